/* A create request whose metadata names a path of a conversation:
 *
 *   sandglass.conversation   and   sandglass.path
 *
 * It gets the sandbox of that path, which may exist already: so programs that know only E2B's SDK
 * have one sandbox per path too. The request's timeout is the context's time to live. */
#pragma once

#include "front/e2b/request.h"
#include "front/e2b/spec.h"

#define PATH_KEY_CONVERSATION "sandglass.conversation"
#define PATH_KEY_PATH         "sandglass.path"

/* Whether the body's metadata has one of the two keys, or both. */
bool path_is_named(const json_t *body);
/* Answers a create request that names a path, now or later. */
void path_create(struct e2b_req *q, enum spec_version version);
/* Sets the timeout of a sandbox that belongs to a path: it is the context's time to live. */
void path_set_timeout(struct e2b_req *q, const struct sandbox *b, uint64_t timeout_ms);
