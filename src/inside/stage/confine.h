/* Makes a freshly forked process fit to run untrusted code, and makes the agent what it must be.
 * The order: rlimits, session, ids, capabilities, no_new_privs, seccomp. */
#pragma once

#include <stdint.h>
#include <sys/resource.h>

#include "inside/agent/agent.h"
#include "lib/base/err.h"

/* The resource limits of programs, for the broker, which sets them in its tables
 * (inside/broker). */
#define CONFINE_LIMITS 10
struct confine_limit {
    int resource;
    struct rlimit value;
};
int confine_limits(const struct agent_config *config, struct confine_limit ret[CONFINE_LIMITS]);

/* The capabilities of this thread; also empties the inheritable and the ambient set. 0 or -errno. */
int confine_caps(uint64_t effective, uint64_t permitted);
/* Real, effective and saved ids, and no further groups. 0 or -errno. */
int confine_ids(uint32_t uid, uint32_t gid);

/* Call it in the child, just before exec. The standard descriptors must be in place, and all others
 * close-on-exec. */
int confine_process(const struct agent_user *as, const struct agent_config *config,
                    struct sg_error *e);
/* Call it once in the future pid 1: leaves uid 0, keeps the capabilities that the agent needs, and
 * becomes undumpable. */
int confine_agent(const struct agent_config *config, struct sg_error *e);

/* For a file operation in the agent itself: confine_fs_begin gives the calling thread the
 * file-system ids, groups and capabilities of `as`, and confine_fs_end takes them back. Everything
 * in between runs with the permissions of that user. To the end of a scope:
 *
 *   AUTO(confine_fs_leave) int entered = confine_fs_begin(as);
 *   if (entered < 0)
 *       return entered; */
int confine_fs_begin(const struct agent_user *as);
void confine_fs_end(void);
/* Whom the agent works as, or NULL. */
const struct agent_user *confine_fs_who(void);
static inline void confine_fs_leave(const int *entered)
{
    if (*entered == 0)
        confine_fs_end();
}
