/* The code that runs in the database worker's process (dbworker.h). */
#pragma once

#include "lib/base/err.h"

/* Waits for a front and for the address of the database, then serves that front; then the next.
 * control: the warden's socket (wire/worker.h), with `front` -1. Or control is -1, and `front` is
 * the socket of the only front to serve: the process ends with it. confine: gives up the process's
 * rights, first of all. Ends the process when the warden is gone, or when a peer sends nonsense. */
_Noreturn void dbworker_process(int control, int front, int (*confine)(struct sg_error *e));
