/* The state directory of a server.
 *
 *   STATE/            root, 0711
 *     lock            held while a server uses it; holds that server's pid
 *     front/          the front's own, 0700: its database
 *     guard/          the guard's own, 0700: its keys, and the record of what went out
 *     log/            root, 0700: what the server says; see logfile.h
 *     layers/         root, 0700: snapshots, one directory each
 *     work/           root, 0700: layers that end with the server; emptied when one starts
 *     used            it is there once a front has had its database
 *     before-ID/      what `serve --new` or `restore` has moved aside
 *
 * layers/ and work/ hold files that sandboxes made, with the ids they had inside: nobody but root
 * may get there. */
#pragma once

#include "lib/base/err.h"

struct state {
    char path[512];
    char name[24]; /* of the server on this machine: one for each directory */
    int dir, lock, snapshots, work;
    bool used;     /* it is noted */
    bool maps_ids; /* whether layers on its file system can be given to sandboxes */
};

#define STATE_NONE                                         \
    {                                                      \
        .dir = -1, .lock = -1, .snapshots = -1, .work = -1 \
    }

/* Makes what is missing, takes the lock, empties work/. */
int state_open(struct state *s, const char *path, struct sg_error *e);
/* Whether the front's database is gone: this directory has been used, or has snapshots, and the
 * database is missing or empty. Then -ENODATA, with what to do; or, anew, front/ and layers/ are
 * moved aside, and 0. Before state_give and snapshots_load. */
int state_check_database(struct state *s, bool anew, struct sg_error *e);
/* From now on a missing database is noticed. */
void state_note_used(struct state *s);
/* Makes a directory in it that belongs to these ids, with all that is in it: another user may have
 * been named for them since, or they come from a backup. */
int state_give(struct state *s, const char *name, uint32_t uid, uint32_t gid, struct sg_error *e);
void state_close(struct state *s);
