/* A backup of a server: what it has that cannot be had again, in a directory, made while it runs.
 *
 *   BACKUP/
 *     backup.json      what is in it, with a checksum for each part
 *     front/           the database (tenants, keys, names of snapshots, sealed secrets, contexts
 * and usage if they are in SQLite, events), and the key of what contexts keep guard/           the
 * key that opens secrets, the CA, the record of what left sandboxes layers/ID        the files of
 * snapshots
 *
 * The database is copied first, as it is at one moment; then the layers that it names. One whose
 * snapshot was deleted meanwhile is taken out of the copy, so a backup never names what it does not
 * have. It is made under another name and renamed when it is whole and on disk: a directory of that
 * name is a backup. Sandboxes, their memory and the server's log are not in it.
 *
 * Restoring copies and checks in one pass, into a directory beside, and puts it in its place at the
 * end, the database last: what is interrupted leaves a server that says that its database is gone.
 * What was there before is moved aside, never overwritten. */
#pragma once

#include "lib/base/err.h"
#include "lib/base/ids.h"
#include "front/store/copy.h"

#define BACKUP_FORMAT    1
#define BACKUP_LEFT_MAX  64
#define BACKUP_FILE_NAME "backup.json"

/* How far it is; what: one word. total may be 0: not known. */
struct backup_watch {
    void (*progress)(void *arg, const char *what, uint64_t bytes);
    void *arg;
};

struct backup_report {
    struct store_facts facts;
    char created[32], version[32];
    uint64_t files, bytes;
    size_t n_snapshots;
    size_t n_left; /* snapshots that could not be copied; the first of them are named */
    struct {
        char id[ID_LEN + 1];
        char why[160];
    } left[BACKUP_LEFT_MAX];
    char aside[600]; /* restore: where to what was there went; "" if nothing was */
};

/* state: the server's directory; dest: must not be there, its parent must. */
int backup_write(const char *state, const char *dest, const struct backup_watch *watch,
                 struct backup_report *ret, struct sg_error *e);
/* Whether all of it is there and as it was. */
int backup_check(const char *source, const struct backup_watch *watch, struct backup_report *ret,
                 struct sg_error *e);
/* -EEXIST: there is a database, and replace was not said. -EBUSY: a server uses it. */
int backup_restore(const char *source, const char *state, bool replace,
                   const struct backup_watch *watch, struct backup_report *ret, struct sg_error *e);
