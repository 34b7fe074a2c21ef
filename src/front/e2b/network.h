/* The rules that a client gives for a sandbox's traffic, checked and brought into one form. Other
 * code enforces them: forward/ for incoming traffic, the guard for outgoing. */
#pragma once

#include <jansson.h>

#include "lib/base/err.h"

/* Reads the `network` of a create request. *ret has the known fields and nothing else. own: the
 * request came through our own API, where denyOut may have names, and allowOut may have names
 * without a denyOut that denies all the rest. */
int network_parse(const json_t *given, bool own, json_t **ret, struct sg_error *e);
/* Reads the body of an update, which replaces all rules for outgoing traffic and keeps the rest of
 * `old` (which may be NULL). */
int network_update(const json_t *body, const json_t *old, json_t **ret, struct sg_error *e);
/* Decides about internet access if the client did not say (*internet is -1): there is none, except
 * for what allowOut names. But a client that denies something means that the rest is open. network
 * may be NULL. */
void network_close(int *internet, const json_t *network);
/* Whether a header can have this value. */
bool header_value_valid(const char *s);
/* Whether everybody may reach the sandbox's ports. network may be NULL. */
bool network_is_public(const json_t *network);
