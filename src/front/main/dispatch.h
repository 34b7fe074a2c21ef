/* Which part of the front answers a request.
 *
 *   Host is PORT-ID.DOMAIN                   that port of that sandbox
 *   header E2b-Sandbox-Id (, E2b-Sandbox-Port) the same
 *   /files with a signature                  the sandbox whose token made it
 *   /v1/...                                  execution contexts and tools
 *   /mcp                                     the same for clients of MCP
 *   anything else                            the control plane
 *
 * Host and headers that name different sandboxes or ports are refused. */
#pragma once

#include "lib/http/http.h"

void dispatch_request(struct http_req *req);
/* What is begun between the two hangs in the trace of that request (front/core/operation.h). */
void dispatch_around(struct http_req *req, bool in);

/* Reads "PORT-ID" at the start of a host name that continues with ".<domain>". False: it is none.
 */
bool dispatch_parse_host(const char *host, const char *domain, unsigned *ret_port, char ret_id[21]);
