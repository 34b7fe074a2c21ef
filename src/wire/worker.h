/* Workers: processes that do for the front what its filter forbids it. The database worker speaks
 * with the database (front/store/dbworker.h), the exporter with collectors and webhooks
 * (front/telemetry/exporter.h).
 *
 * The front may not start processes, so the warden starts the workers. Whenever a front or a worker
 * is new, the warden makes a socket pair and gives each one end. So a worker that ends is replaced
 * while the front lives on, and a worker whose front has ended waits for the next front.
 *
 *   warden                          worker
 *     WORKER_FRONT + socket ----->    to a front; the socket before is over
 *     WORKER_BEAT --------------->    answered with the same (warden/processes/heartbeat.h)
 *         <---------------------- WORKER_READY: it can work
 *         <---------------------- WORKER_FAILED: it cannot work, and ends
 *
 * Front and worker have a protocol of their own, which the warden does not know. */
#pragma once

#include "lib/base/err.h"

#define WORKER_MAGIC   0x73677731u /* "sgw1" */
#define WORKER_CONTROL 3 /* in the worker: its socket to the warden (warden/host/program.h) */

enum worker_what { WORKER_FRONT = 1, WORKER_BEAT, WORKER_READY, WORKER_FAILED, WORKER_MAX_ };

struct worker_message {
    uint32_t magic, what;
    char message[256]; /* FAILED */
};

/* ---- in the worker --------------------------------------------------------------------------- */

/* To be called when the warden's socket is readable. Answers a heartbeat, or takes a new socket to
 * the front and returns it, nonblocking; otherwise returns -1. Ends the process if the warden is
 * gone. */
int worker_take(int control);
/* Sends a message to the warden. control -1: there is no warden, as in tests, and nothing is
 * sent. */
void worker_say(int control, enum worker_what what, const char *message);
