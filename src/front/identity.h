/* What tells a program inside that it runs in a sandbox, and in which. */
#pragma once

#include "front/box.h"

/* Writes /run/e2b/.E2B_SANDBOX, .E2B_SANDBOX_ID and .E2B_TEMPLATE_ID. Sent ahead of any other
 * request, so whatever comes later finds them; nobody waits for it. */
void identity_write(struct box *b);
/* Calls fn for each variable that every program of the sandbox gets: the caller's, then ours. */
void identity_envs(const struct box *b, void (*fn)(void *arg, const char *name, const char *value),
                   void *arg);
