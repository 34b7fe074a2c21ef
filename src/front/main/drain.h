/* How a server ends in good order, once the warden has told it to (TELL_DRAIN). The front:
 *
 *   refuses     is not ready any more, and answers new work 503 with Retry-After. Listeners stay
 *               open, and requests that help to finish (input, signals, reading, ending) are served
 *   waits       for the requests under way that a client waits for, drain_timeout at most
 *   signs off   takes its sandboxes out of the rows of contexts, and declares itself dead at once:
 *               other servers that share the database make new sandboxes, and send nobody here
 *   tells       the usage, events and spans that it still holds; then it exits
 *
 * The warden ends the front if that takes too long, or at a second signal. */
#pragma once

#include "front/core/front.h"
#include "lib/http/http.h"

/* Calls `leave` when the server has signed off. The last step, to tell what is still held, is the
 * caller's. */
void drain_begin(struct front *f, void (*leave)(void *arg));
/* Answers a request that would begin new work while the server drains; true: it was answered. port:
 * of the sandbox that the request is for, or 0. Requests that may name a path of a conversation
 * pass, since another server may have to serve them: the code that looks up the path answers 307,
 * or refuses. */
bool drain_refuses(struct http_req *req, unsigned port);
