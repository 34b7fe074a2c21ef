/* GET /health?ready: whether a sandbox can be handed out. The warden knows; it is asked once for
 * all who ask at the same time, and what it said is good for a second. A server that drains is not
 * ready. GET /health alone says that this process lives. */
#pragma once

#include "front/core/front.h"
#include "lib/http/http.h"

/* Answers 204, or 503 with the reason and Retry-After. */
void ready_answer(struct http_req *req);
