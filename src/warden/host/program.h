/* Starting a program that has no rights: the parts of Sandglass that read what strangers wrote.
 *
 * The caller opens it, and it is executed by that descriptor: its user need not be able to reach
 * it, which in a clone below a folder of mode 700 it is not, nor to start it by its mode. One that
 * cannot be started is program_start's error, with the reason.
 *
 * It gets a user of its own, no capability and no way to one, an empty environment, a directory,
 * and no descriptor but 0 (nothing), 1 and 2 (the caller's), PROGRAM_FD, its end of a
 * SOCK_SEQPACKET pair, and perhaps the next one, `more`. */
#pragma once

#include "lib/base/err.h"

#define PROGRAM_FD 3

/* The guard's, which a server and an engine start. */
#define GUARD_USER    "sandglass-guard"
#define GUARD_ID      0x0fff0001u /* without such a user: below all ids of sandboxes */
#define GUARD_MEMLOCK (64u * 1024 * 1024)

struct program {
    const char *name; /* in messages */
    const char *path;
    const char *argument; /* NULL: none */
    uint32_t uid, gid;
    int dir;               /* where it is started */
    int more;              /* a descriptor that becomes PROGRAM_FD + 1; 0 or less: none */
    uint64_t memlock;      /* bytes that it may lock, as far as we may give them */
    bool ends_with_thread; /* when the thread that starts it ends, and not by the socket alone */
};

struct program_ends {
    int pid, pidfd, sock;
};
int program_start(const struct program *p, struct program_ends *ret, struct sg_error *e);

/* The ids of a user: `name`, or if that is "", of `usual`, and without such a user `id` as both.
 * `what` is the name of the setting. */
int program_user(const char *what, const char *name, const char *usual, uint32_t id,
                 uint32_t *ret_uid, uint32_t *ret_gid, struct sg_error *e);
