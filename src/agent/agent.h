/* The agent: pid 1 of a sandbox. It starts processes, moves their bytes, works on files for the
 * owner of the sandbox, and opens the sudo door. It runs in an id of its own (AGENT_UID) that no
 * user of the sandbox has, cannot be traced or signalled from inside, and reads nothing in the
 * sandbox to decide what to do: users come from the table below, not from /etc/passwd. */
#pragma once

#include <stdint.h>

#include "base/err.h"
#include "warden/stage/seccomp.h"

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
    unsigned omit; /* layers left out: control builds only, see stage/layers.h */
};

/* Serves the channel until its other end is closed, then returns; the caller exits and with it the
 * whole pid namespace. Called with every namespace, mount and capability in place. */
int agent_serve(int channel_fd, const struct agent_config *config);
