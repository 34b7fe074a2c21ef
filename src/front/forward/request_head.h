/* Writes the heads of requests to the server inside, and decides which headers may pass. */
#pragma once

#include "lib/text/strbuf.h"
#include "lib/http/http.h"

#define HEAD_MAX (128u * 1024) /* bytes of a head as written; the client's head was smaller */

/* False for headers that belong to one connection only: the known names, and those that the
 * message's own Connection headers list. Names are in lower case. */
bool header_passes(const struct http_header *headers, size_t n, const char *name);
/* The value of the only header of that name. NULL: there is none, or there are several. */
const char *header_single(const struct http_header *headers, size_t n, const char *name);
/* Writes a head. `host` is the name that the server is told it has. `upgrade` is the value of
 * Upgrade, or NULL. Headers that only we need are left out; headers about the client are set by us,
 * never copied. */
void request_head_write(struct strbuf *out, const struct http_req *req, const char *host,
                        const char *upgrade);
/* The protocol that a request asks to change to, or NULL. A request with a body asks for none. */
const char *request_upgrade(const struct http_req *req);
/* Fills ${PORT} into maskRequestHost. False: the result is no host. */
bool mask_host(const char *mask, unsigned port, char *ret, size_t cap);
