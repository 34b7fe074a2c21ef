/* Turning a freshly forked process into one that may run untrusted code, and the agent into what it
 * must be: rlimits, session, ids, capabilities, no_new_privs, seccomp, in that order. */
#pragma once

#include <stdint.h>
#include <sys/resource.h>

#include "inside/agent/agent.h"
#include "lib/base/err.h"

/* The resource limits of programs, for those that set them another way (warden/twin). */
#define CONFINE_LIMITS 10
struct confine_limit {
    int resource;
    struct rlimit value;
};
int confine_limits(const struct agent_config *config, struct confine_limit ret[CONFINE_LIMITS]);

/* In the child, just before exec. Standard descriptors are in place; all others are close-on-exec.
 */
int confine_process(const struct agent_user *as, const struct agent_config *config,
                    struct sg_error *e);
/* In the future pid 1, once: leaves uid 0, keeps the capabilities the agent needs, becomes
 * undumpable. */
int confine_agent(const struct agent_config *config, struct sg_error *e);

/* For a file operation in the agent itself: the file-system ids, groups and capabilities of `as`
 * for the calling thread, and back. Everything in between is done with the permissions of that
 * user. */
int confine_fs_begin(const struct agent_user *as);
void confine_fs_end(void);
