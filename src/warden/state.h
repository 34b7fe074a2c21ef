/* The state directory of a server.
 *
 *   STATE/            root, 0711
 *     lock            locked while a server uses the directory; contains that server's pid
 *     front/          the front's own, 0700: its database
 *     guard/          the guard's own, 0700: its keys, and its record
 *     log/            root, 0700: the server's log; see logfile.h
 *     layers/         root, 0700: snapshots, and what ends with the server: see snapshot.h
 *     disks           where the latest server had the disks of its sandboxes, for `sandglass doctor`
 *     volumes/        root, 0700: volumes, by tenant and id: see sandboxes/volume.h
 *     used            exists once a front has had its database
 *     before-ID/      what `serve --new` or `restore` has moved aside
 *
 * layers/ and volumes/ contain files that sandboxes made, with the ids they had inside. So nobody but root may
 * get there. */
#pragma once

#include "lib/base/err.h"

#define DISKS_NAME "disks"
#define DISKS_MAX  512

struct state {
    char path[512];
    char name[24]; /* the server's name on this machine: one per directory */
    int dir, lock, snapshots, worlds, volumes;
    bool used;     /* STATE/used exists */
    bool maps_ids; /* layers on its file system can be mounted with mapped ids */
};

#define STATE_NONE                                                          \
    {                                                                       \
        .dir = -1, .lock = -1, .snapshots = -1, .worlds = -1, .volumes = -1 \
    }

/* Creates whatever is missing, and takes the lock. */
int state_open(struct state *s, const char *path, struct sg_error *e);
/* Checks that the front's database has not been lost. It is lost if this directory has been used,
 * or has snapshots, and the database is missing or empty. Then returns -ENODATA with an error text
 * that says what to do; or, with `anew`, moves front/, layers/ and volumes/ aside and returns 0. Call it
 * before state_give and snapshots_load. */
int state_check_database(struct state *s, bool anew, struct sg_error *e);
/* Creates STATE/used: from now on state_check_database notices a missing database. */
void state_note_used(struct state *s);
/* Creates a directory in STATE, and gives it with all that is in it to these ids. The files may
 * belong to others: the settings may name another user by now, or the files come from a backup. */
int state_give(struct state *s, const char *name, uint32_t uid, uint32_t gid, struct sg_error *e);
void state_close(struct state *s);
