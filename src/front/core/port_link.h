/* Links: addresses that open one port of one sandbox until a set time, for sandboxes whose ports are
 * not public (allowPublicTraffic: false).
 *
 *   PORT-ID-LINK.DOMAIN    LINK = end and signature, PORT_LINK_LEN characters
 *
 * A link is a host name, so every request of a page that was opened with it has it, and WebSockets
 * too: no cookie is set. The end is the time in seconds as 7 digits of base 36; the signature is 28
 * hexadecimal digits of HMAC-SHA256(traffic token of the sandbox, "link ID PORT END"). Nothing is
 * kept: a link ends with its time or with its sandbox, whichever is first. */
#pragma once

#include "front/core/sandbox.h"

#define PORT_LINK_LEN     35
#define PORT_LINK_MAX_S   (30u * 24 * 3600)
#define PORT_LINK_USUAL_S 3600u

/* Only for a sandbox with a traffic token. */
void port_link_make(const struct sandbox *b, unsigned port, int64_t end_s,
                    char ret[PORT_LINK_LEN + 1]);
/* Whether the request's Host is a link that opens this port now. */
bool port_link_opens(const struct sandbox *b, unsigned port, const struct http_req *req);
