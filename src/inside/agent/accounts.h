/* Users and groups: "user" and "root" of users.c, and whoever else is in the sandbox's own
 * /etc/passwd and /etc/group. Root inside can write anything there, so both are read up to a limit,
 * and what cannot be understood is nobody's. An entry gives no more than root inside has.
 *
 * A name may also be a number, as in images: the id of an entry, or an id that has none. Ids from
 * AGENT_UID on become nobody's: a sandbox has no more, and that one is the agent's. */
#pragma once

#include "inside/agent/agent.h"

#define ACCOUNTS_MAX    (256u * 1024) /* bytes of a file; what is behind them does not count */
#define ACCOUNTS_NOBODY 65534u

/* For the agent, which reads the files with root's permissions. -EUSERS: there is none. */
int agent_account_user(const char *name, struct agent_user *ret, struct sg_error *e);
int agent_account_group(const char *name, uint32_t *ret_gid, struct sg_error *e);

/* With the permissions that one has: the agent calls these between confine_fs_begin and
 * confine_fs_end. False: there is no such user, or the file cannot be read. */
bool account_user(const char *name, struct agent_user *ret);
/* The name of an id, or the number if it has none. */
void account_user_name(uint32_t uid, char ret[OPS_NAME_MAX + 1]);
void account_group_name(uint32_t gid, char ret[OPS_NAME_MAX + 1]);

/* The text of such a file, taken apart; it is changed. The first entry counts that has the name, or
 * the id if name is NULL. False: none does. */
bool accounts_find_user(char *text, const char *name, uint32_t uid, struct agent_user *ret);
bool accounts_find_group(char *text, const char *name, uint32_t gid, struct agent_user *ret);
