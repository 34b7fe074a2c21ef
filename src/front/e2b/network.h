/* The rules for a sandbox's traffic that a client gives, checked and brought into one form. What
 * they mean is enforced elsewhere: of what comes in by forward/, of what goes out by the guard. */
#pragma once

#include <jansson.h>

#include "lib/base/err.h"

/* The `network` of a create request. *ret holds the known fields and nothing else. own: our
 * surface's, where denyOut may have names, and allowOut may without denying the rest in so many
 * words. */
int network_parse(const json_t *given, bool own, json_t **ret, struct sg_error *e);
/* The body of an update: replaces what is said about outgoing traffic, keeps the rest of `old`
 * (which may be NULL). */
int network_update(const json_t *body, const json_t *old, json_t **ret, struct sg_error *e);
/* What counts where nobody has said whether there is internet (-1): there is none but for what is
 * allowed, unless something is denied, which says that the rest is not. network may be NULL. */
void network_close(int *internet, const json_t *network);
/* Whether everybody may reach its ports. network may be NULL. */
bool network_is_public(const json_t *network);
