/* The rules for a sandbox's traffic that a client gives, checked and brought into one form. What
 * they mean is enforced elsewhere: of what comes in by forward/, of what goes out by nobody yet,
 * because nothing goes out. */
#pragma once

#include <jansson.h>

#include "base/err.h"

/* The `network` of a create request. *ret holds the known fields and nothing else. */
int network_parse(const json_t *given, json_t **ret, struct sg_error *e);
/* The body of an update: replaces what is said about outgoing traffic, keeps the rest of `old`
 * (which may be NULL). */
int network_update(const json_t *body, const json_t *old, json_t **ret, struct sg_error *e);
/* Whether everybody may reach its ports. network may be NULL. */
bool network_is_public(const json_t *network);
