/* Starts a program without rights: one of the parts of Sandglass that read what strangers wrote.
 *
 * The caller opens the program, and it is executed by that descriptor. So the program's user need
 * not be able to reach the file, which it cannot in a clone below a folder of mode 700, nor have
 * the right to execute it. If the program cannot be started, program_start returns the error, with
 * the reason.
 *
 * The program gets a user of its own, no capability and no way to one, an empty environment and a
 * directory. Its descriptors are 0 (nothing), 1 and 2 (the caller's), PROGRAM_FD (its end of a
 * SOCK_SEQPACKET pair), perhaps `more` as the next one, and no other. */
#pragma once

#include "lib/base/err.h"

#define PROGRAM_FD        3
#define PROGRAM_MORE_PATH "/proc/self/fd/4" /* of `more` */
#define PROGRAM_ARGUMENTS 8

/* The guard's user. Both a server and an engine start a guard. */
#define GUARD_USER    "sandglass-guard"
#define GUARD_ID      0x0fff0001u /* if there is no such user: below all ids of sandboxes */
#define GUARD_MEMLOCK (64u * 1024 * 1024)

struct program {
    const char *name; /* for messages */
    const char *path;
    const char *const *arguments; /* up to a NULL, PROGRAM_ARGUMENTS at most; NULL: none */
    uint32_t uid, gid;
    int dir;               /* its working directory */
    int more;              /* a descriptor that becomes PROGRAM_FD + 1; 0 or less: none */
    uint64_t memlock;      /* bytes that it may lock, if the caller may allow that */
    bool silent;           /* its descriptors 1 and 2 lead nowhere */
    bool ends_with_thread; /* ends also when the thread ends that started it */
};

struct program_ends {
    int pid, pidfd, sock;
};
int program_start(const struct program *p, struct program_ends *ret, struct sg_error *e);

/* Looks up the ids of the user `name`, or, if that is "", of the user `usual`; if that user does
 * not exist, both are `id`. `what` is the name of the setting. */
int program_user(const char *what, const char *name, const char *usual, uint32_t id,
                 uint32_t *ret_uid, uint32_t *ret_gid, struct sg_error *e);
