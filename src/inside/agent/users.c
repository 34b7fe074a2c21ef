/* The users of every sandbox. The table is constant, because root inside can change /etc/passwd: what
 * must always work goes by it. */
#include <string.h>

#include "inside/agent/agent.h"

static const struct agent_user users[] = {
    {"user", 1000, 1000, "/home/user", "/bin/bash", false},
    {"root", 0, 0, "/root", "/bin/bash", false},
};

const struct agent_user *agent_user_find(const char *name)
{
    for (size_t i = 0; i < ARRAY_SIZE(users); i++)
        if (strcmp(users[i].name, name) == 0)
            return &users[i];
    return NULL;
}

const struct agent_user *agent_user_by_uid(uint32_t uid)
{
    for (size_t i = 0; i < ARRAY_SIZE(users); i++)
        if (users[i].uid == uid)
            return &users[i];
    return NULL;
}
