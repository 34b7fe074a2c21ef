/* Port 49999 of a sandbox, as E2B's code interpreter SDKs speak to it. What is a web server and a
 * Jupyter server inside the sandbox at E2B is a part of the front here; the agent keeps the kernels
 * (OP_KERNEL_* in wire/agent.h).
 *
 *   routes.c     who may ask, which function answers, CORS; GET /health
 *   contexts.c   the contexts: list, create, remove, restart, interrupt
 *   request.c    what a body asks for
 *   execute.c    POST /execute                          cell.c       a cell, from its code to its
 *                                                       last line: the tools use it too
 *   ending.c     what the end of a cell means to its client
 *   lines.c      the answer, a JSON object a line      results.c    packets of a kernel to lines
 *   escape.c     text of a line, in ASCII               json_text.c  JSON of a line, checked
 *   frames.c     what waits for a slow client
 *
 * Who may: /execute and /contexts/{id}/interrupt need the sandbox's access token, if it has one.
 * The other routes do not, since the SDKs send none there; a wrong one is refused everywhere.
 * Whether ports are public at all has been looked at before (front/main/dispatch.c). */
#pragma once

#include "front/core/sandbox.h"
#include "lib/http/http.h"

/* Answers a request to a sandbox that runs. */
void interpreter_request(struct sandbox *b, struct http_req *req);
/* Whether the token came along where it is needed: whoever may not talk to a sandbox may not wake
 * it either. */
bool interpreter_allows(const struct sandbox *b, struct http_req *req);
