/* Every port of a sandbox but envd's and the interpreter's: HTTP and WebSocket, to whatever server
 * listens there.
 *
 *   client --http--> forward.c --OP_NET_CONNECT--> agent --TCP--> 127.0.0.1:PORT of the sandbox
 *
 * Both ends are strangers. The request is written anew from its parsed form (request_head.h), and
 * the answer is parsed before any of it is passed on (response.h): framing is never copied, so
 * neither end can make the other see a message that we did not see. Each request has a connection
 * of its own: nothing is pooled, since another server may listen inside at any time.
 *
 *   refusal.c      the answer when a request cannot be forwarded
 *   tls_client.c   servers inside that speak TLS (httpsPorts) */
#pragma once

#include "front/core/sandbox.h"
#include "lib/http/http.h"

/* Answers a request to a port of a running sandbox. */
void forward_request(struct sandbox *b, unsigned port, struct http_req *req);
/* Whether the request would be forwarded. Also asked before a paused sandbox is woken: a client
 * that may not talk to a sandbox may not wake it either. */
bool forward_allows(const struct sandbox *b, unsigned port, const struct http_req *req);
