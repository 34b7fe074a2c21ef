/* GET /health?ready: whether the server can hand out a sandbox. The warden knows. It is asked once
 * for all who ask at the same time, and its answer is good for a second. A server that drains is
 * not ready. GET /health alone says only that this process lives. */
#pragma once

#include "front/core/front.h"
#include "lib/http/http.h"

/* Answers 204, or 503 with the reason and Retry-After. */
void ready_answer(struct http_req *req);
