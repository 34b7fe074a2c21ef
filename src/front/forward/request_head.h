/* Heads on their way to the server inside, and which headers may pass. */
#pragma once

#include "lib/text/strbuf.h"
#include "lib/http/http.h"

#define HEAD_MAX (128u * 1024) /* of what is written; what came was smaller */

/* False for what belongs to one connection only: the known names, and those that the message's own
 * Connection headers list. Names are in lower case. */
bool header_passes(const struct http_header *headers, size_t n, const char *name);
/* The value of the only header of that name; NULL if there is none, or more. */
const char *header_single(const struct http_header *headers, size_t n, const char *name);
/* `host` is what the server is told it is called. upgrade: the value of Upgrade, or NULL. Left out
 * is what only we need to know; what tells of the client is set, never taken from it. */
void request_head_write(struct strbuf *out, const struct http_req *req, const char *host,
                        const char *upgrade);
/* The protocol that a request asks to change to, or NULL. One with a body asks for none. */
const char *request_upgrade(const struct http_req *req);
/* maskRequestHost with ${PORT} filled in. False: it is no host. */
bool mask_host(const char *mask, unsigned port, char *ret, size_t cap);
