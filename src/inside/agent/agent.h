/* The agent: pid 1 of a sandbox. It starts processes, moves their bytes, works on files for the
 * owner of the sandbox, and opens the sudo door. It runs in an id of its own (AGENT_UID) that no
 * user of the sandbox has, cannot be traced or signalled from inside, and reads nothing in the
 * sandbox to decide what to do: users come from the table below, not from /etc/passwd. */
#pragma once

#include <stdint.h>

#include "lib/base/err.h"
#include "inside/stage/seccomp.h"

#define AGENT_UID 65535u

struct agent_user {
    const char *name;
    uint32_t uid, gid;
    const char *home, *shell;
};

/* "user" and "root". NULL if there is no such user. */
const struct agent_user *agent_user_find(const char *name);
const struct agent_user *agent_user_by_uid(uint32_t uid);

struct agent_config {
    const struct seccomp_prog *filter; /* for every process but the agent */
    uint64_t disk_bytes;               /* RLIMIT_FSIZE */
    uint32_t pids;                     /* RLIMIT_NPROC */
    uint32_t cpus;                     /* processors; 0: not told */
    bool line;                         /* what agent_serve is given: see there */
    bool twins;                        /* kernels can be asked for on the line */
    const char *kernels; /* where their programs are; NULL: where a template has them */
    unsigned omit;       /* layers left out: control builds only, see stage/layers.h */
};

/* Serves, then returns; the caller exits and with it the whole pid namespace. Called with every
 * namespace, mount and capability in place.
 *
 * Without config->line, fd is the channel, and the agent ends when that is closed. With it, fd is a
 * line: a socket that brings channels, new roots, and with config->twins kernels, each as a struct
 * line_message (stage/stage.h) with descriptors. All the agent sends on it is that it wants a
 * kernel, and how it went with a root.
 *
 *              a channel comes                 another comes
 *   waiting ------------------> serving ---------------------------> serving (the new one)
 *      ^                           |
 *      +---------------------------+  it is closed, or its peer broke the protocol
 *
 * A channel that ends takes its operations with it; processes with PROC_DETACH go on, and a later
 * channel finds them by pid or tag. When the line closes, or brings anything else, the agent ends.
 */
int agent_serve(int fd, const struct agent_config *config);
