/* Workers: processes that do for the front what its filter does not let it do. The database worker
 * speaks with the database (front/store/database worker.h), the exporter with collectors and
 * webhooks (front/telemetry/exporter.h).
 *
 * The warden starts them, since the front may start nothing, and brings the two together: a socket
 * pair, one end for each, whenever one of them is new. So a worker that ends is replaced while the
 * front lives on, and a front that ends leaves a worker that waits for the next one.
 *
 *   warden                          worker
 *     WORKER_FRONT + socket ----->    to a front; the one before is over
 *     WORKER_BEAT --------------->    answered with the same (warden/processes/heartbeat.h)
 *         <---------------------- WORKER_READY: it can work, WORKER_FAILED: it cannot, and ends
 *
 * What the front and a worker say to each other is theirs alone. */
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

/* When the warden's socket is readable: answers a heartbeat, or takes a new socket to the front.
 * Returns that, nonblocking, or -1. Ends the process if the warden is gone. */
int worker_take(int control);
/* control -1: there is no warden, as in tests. */
void worker_say(int control, enum worker_what what, const char *message);
