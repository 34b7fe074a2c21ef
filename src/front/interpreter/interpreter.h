/* Port 49999 of a sandbox, as E2B's code interpreter SDKs speak to it. E2B runs a web server and a
 * Jupyter server for this inside the sandbox; here the front answers, and the agent keeps the
 * kernels (OP_KERNEL_* in wire/agent.h).
 *
 *   routes.c      who may ask, which function answers, CORS; GET /health
 *   contexts.c    the contexts: list, create, remove, restart, interrupt
 *   request.c     reads the bodies of requests
 *   execute.c     POST /execute
 *   cell.c        a cell, from its code to its last line; the tools use it too
 *   ending.c      the error that a client gets for the end of a cell
 *   lines.c       the answer: a JSON object a line
 *   results.c     packets of a kernel to lines
 *   escape.c      text of a line, in ASCII
 *   json_text.c   JSON of a line, checked
 *   frames.c      frames that wait for a slow client
 *
 * /execute and /contexts/{id}/interrupt need the sandbox's access token, if it has one. The other
 * routes do not, since the SDKs send none there; but every route refuses a wrong token. Whether the
 * sandbox's ports are public at all was checked before (front/main/dispatch.c). */
#pragma once

#include "front/core/sandbox.h"
#include "lib/http/http.h"

/* Answers a request to a running sandbox. */
void interpreter_request(struct sandbox *b, struct http_req *req);
/* Whether the request has the token where it is needed. Also asked before a paused sandbox is
 * woken: a client that may not talk to a sandbox may not wake it either. */
bool interpreter_allows(const struct sandbox *b, struct http_req *req);
