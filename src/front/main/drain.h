/* The end of a server, in order, when it was told to end (TELL_DRAIN):
 *
 *   refuses     not ready any more; new work is answered 503 with Retry-After. Listeners stay open,
 *               and what helps to finish (input, signals, reading, ending) is answered
 *   waits       for what is under way and somebody waits for, drain_timeout at most
 *   signs off   rows of contexts name no sandbox of this server any more, and it counts as dead at
 *               once: others that share the database make new ones, and send nobody here
 *   tells       what was used, events, spans; then it exits
 *
 * The warden ends it if that takes too long, or at a second signal. */
#pragma once

#include "front/core/front.h"
#include "lib/http/http.h"

/* `leave` is called when all is done but for what the caller still has to tell. */
void drain_begin(struct front *f, void (*leave)(void *arg));
/* Whether the server drains and the request would begin something: then it was answered. port: of a
 * sandbox, or 0. What may be another server's to do goes on: who looks for the path of a
 * conversation answers 307, or refuses it. */
bool drain_refuses(struct http_req *req, unsigned port);
