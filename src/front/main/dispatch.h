/* Which part of the front answers a request.
 *
 *   Host is PORT-ID.DOMAIN                       that port of that sandbox
 *   header E2b-Sandbox-Id (, E2b-Sandbox-Port)   the same
 *   /files with a signature                      the sandbox whose token made the signature
 *   /v1/...                                      execution contexts and tools
 *   /mcp                                         the same for clients of MCP
 *   a host below DOMAIN or with a port, no key   nobody: it is told what to do (stray.h)
 *   anything else                                the control plane
 *
 * The front refuses a request whose Host and headers name different sandboxes or ports. */
#pragma once

#include "lib/http/http.h"

void dispatch_request(struct http_req *req);
/* Called before (in) and after (not in) any work for a request. Every operation that begins between
 * the two calls belongs to the trace of that request (front/core/operation.h). */
void dispatch_around(struct http_req *req, bool in);

/* Reads "PORT-ID" at the start of a host name that continues with ".<domain>". False: the host is
 * not of that form. */
bool dispatch_parse_host(const char *host, const char *domain, unsigned *ret_port, char ret_id[21]);
