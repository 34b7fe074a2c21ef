/* A backup of a server: everything that cannot be made again, in a directory, made while the server
 * runs.
 *
 *   BACKUP/
 *     backup.json   the list of parts, with a checksum for each
 *     front/        the database (tenants, keys, names of snapshots, sealed secrets, events;
 *                   contexts and usage if they are in SQLite), and the key for the texts that
 *                   contexts keep
 *     guard/        the key that opens secrets, the CA, the record of what left sandboxes
 *     layers/ID     the files of snapshots; layers/ID.WORLD, if they stand on a world
 *     worlds/ID     worlds, as they are
 *     volumes/TENANT/ID   the files of volumes
 *
 * The backup copies the database first, as it is at one point in time, then the layers and volumes that
 * the database names. Programs may write to volumes meanwhile (tree.h). If a snapshot is deleted meanwhile, its row is taken out of the copy: a backup
 * never names a layer that it does not have. The directory has another name until it is whole and
 * on disk, and is renamed then: a directory of the final name is always a whole backup. Sandboxes,
 * their memory and the server's log are not part of a backup.
 *
 * A restore copies and checks in one pass, into a directory beside the server's, and moves the
 * parts into place at the end, the database last: if the restore is interrupted, the server says
 * that its database is gone. The server's old files are moved aside, never overwritten. */
#pragma once

#include "lib/base/err.h"
#include "lib/base/ids.h"
#include "front/store/copy.h"

#define BACKUP_FORMAT    2 /* 1: without volumes, and with other checksums for zeros */
#define BACKUP_LEFT_MAX  64
#define BACKUP_FILE_NAME "backup.json"

/* Hears of progress. what: one word, such as "checked"; bytes: how many more were read. */
struct backup_watch {
    void (*progress)(void *arg, const char *what, uint64_t bytes);
    void *arg;
};

struct backup_report {
    struct store_facts facts;
    char created[32], version[32];
    uint64_t files, bytes;
    size_t n_snapshots, n_volumes;
    uint64_t torn;         /* files of volumes that changed whenever they were copied */
    uint64_t volumes_left; /* volumes that were not to be copied */
    size_t n_left;         /* what could not be copied; `left` names the first of them */
    struct {
        const char *what; /* "snapshot", "volume" */
        char id[ID_LEN + 1];
        char why[160];
    } left[BACKUP_LEFT_MAX];
    char aside[600]; /* restore: where the old files were moved; "" if there were none */
};

/* state: the server's directory. dest: must not exist, but its parent must. */
int backup_write(const char *state, const char *dest, bool volumes,
                 const struct backup_watch *watch, struct backup_report *ret, struct sg_error *e);
/* Checks that every part of the backup is there, and unchanged. */
int backup_check(const char *source, const struct backup_watch *watch, struct backup_report *ret,
                 struct sg_error *e);
/* -EEXIST: the server has a database, and `replace` is false. -EBUSY: a server runs there. */
int backup_restore(const char *source, const char *state, bool replace,
                   const struct backup_watch *watch, struct backup_report *ret, struct sg_error *e);
