/* What runs in the database worker's process (database worker.h). */
#pragma once

#include "lib/base/err.h"

/* Waits for a front, and to be told where the database is, then serves; then the next front.
 * control: the warden's socket (wire/worker.h), or -1, and then it ends with the front whose
 * socket `front` is; else that is -1. confine: what it takes from itself, first thing. Ends the
 * process when the warden is gone, or somebody says what cannot be. */
_Noreturn void dbworker_process(int control, int front, int (*confine)(struct sg_error *e));
