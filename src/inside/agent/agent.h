/* The agent: pid 1 of a sandbox. It starts processes, moves their bytes, works on files for the
 * owner of the sandbox, and opens the sudo door. It runs under an id of its own (AGENT_UID) that no
 * user of the sandbox has, so nobody inside can trace or signal it. "user" and "root" come from the
 * table in users.c, whatever is in the sandbox's files; other users from there (accounts.h). */
#pragma once

#include <stdint.h>

#include "lib/base/err.h"
#include "inside/stage/seccomp.h"
#include "wire/agent.h"

#define AGENT_UID           65535u
#define AGENT_USER_PATH_MAX 256

struct agent_user {
    char name[OPS_NAME_MAX + 1];
    uint32_t uid, gid;
    char home[AGENT_USER_PATH_MAX], shell[AGENT_USER_PATH_MAX];
    bool as_root; /* works on files with root's rights; what it makes is its own all the same */
};

/* Knows "user" and "root". NULL if there is no such user. */
const struct agent_user *agent_user_find(const char *name);
const struct agent_user *agent_user_by_uid(uint32_t uid);

struct view_fds;

struct agent_config {
    const struct seccomp_prog *filter; /* for every process but the agent */
    const struct seccomp_prog *agent_filter;
    uint64_t disk_bytes;         /* RLIMIT_FSIZE */
    uint32_t pids;               /* RLIMIT_NPROC */
    uint32_t cpus;               /* how many processors; 0: unknown */
    const struct view_fds *view; /* NULL: programs see the host's figures */
    bool line;                   /* fd of agent_serve is a line, not a channel: see there */
    bool twins;                  /* the agent can ask for kernels on the line */
    const char *kernels; /* where the kernels' programs are; NULL: where a template has them */
    unsigned omit;       /* defences left out, in control builds only: see stage/defences.h */
};

/* Serves, then returns. The caller exits, and with it the whole pid namespace. Call it with every
 * namespace, mount and capability in place.
 *
 * Without config->line, fd is the channel, and the agent ends when the channel is closed. With
 * config->line, fd is a line: a socket that brings channels, new roots, and with config->twins
 * kernels, each as a struct line_message (stage/stage.h) with descriptors. The agent sends two
 * things on the line: that it wants a kernel, and how a new root went.
 *
 *              a channel comes                 another channel comes
 *   waiting ------------------> serving ---------------------------> serving (the new one)
 *      ^                           |
 *      +---------------------------+  the channel closes, or its peer breaks the protocol
 *
 * A channel that ends takes its operations with it. Processes with PROC_DETACH go on, and a later
 * channel finds them by pid or tag. The agent ends when the line closes or brings anything else. */
int agent_serve(int fd, const struct agent_config *config);
