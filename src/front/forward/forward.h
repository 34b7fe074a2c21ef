/* Every port of a sandbox but envd's: HTTP and WebSocket, to whatever listens there.
 *
 *   client --http--> forward.c --OP_NET_CONNECT--> agent --TCP--> 127.0.0.1:PORT of the sandbox
 *
 * Both ends are strangers. The request is written anew from what was parsed (request_head.h), and
 * the answer is parsed before any of it is passed on (response.h): framing is never copied, so
 * neither end can make the other see a message that we did not. One connection for one request:
 * nothing is pooled, since the server inside may be another one the next moment.
 *
 *   refusal.c      what is said instead when there is nothing to forward
 *   tls_client.c   servers inside that speak TLS (httpsPorts) */
#pragma once

#include "front/core/sandbox.h"
#include "lib/http/http.h"

/* Answers a request to a port of a sandbox that runs. */
void forward_request(struct sandbox *b, unsigned port, struct http_req *req);
/* Whether it would be let through: whoever may not talk to a sandbox may not wake it either. */
bool forward_allows(const struct sandbox *b, const struct http_req *req);
