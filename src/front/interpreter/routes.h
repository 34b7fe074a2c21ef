/* The handlers of the interpreter's routes, and their errors. A handler finds the sandbox in
 * req->owner. */
#pragma once

#include "lib/channel/wire.h"
#include "front/core/call.h"
#include "front/core/front.h"

void interpreter_execute(struct http_req *req);
void interpreter_list(struct http_req *req);
void interpreter_create(struct http_req *req);
void contexts_remove(struct http_req *req);
void contexts_restart(struct http_req *req);
void contexts_interrupt(struct http_req *req);

/* Answers with an error as text in one line, which the SDKs show. */
void refuse(struct http_req *req, int status, const char *fmt, ...) PRINTF(3, 4);
/* The same for a call that failed with this status (front/core/call.h), which is not 0. `context`:
 * the context that the request named, or NULL. */
void refuse_call(struct http_req *req, const struct sandbox *b, int status, const char *message,
                 const char *context);
