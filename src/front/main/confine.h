/* What the front takes from itself before it reads the first byte from outside. It was started
 * without privilege (warden/processes/front_process.c); what it never does is forbidden on top:
 * starting programs, dialling out, and the system calls that kernels are attacked with. A front
 * that was taken over can then neither run a program nor open a connection: it can only use the
 * descriptors it has. */
#pragma once

#include "lib/base/err.h"

int confine_front(struct sg_error *e);
/* The same for the database worker (front/store/database worker.h), a process beside it, which may
 * dial out: to the database. It reads nothing of clients but what the front hands it as parameters
 * of statements. */
int confine_dbworker(struct sg_error *e);
int confine_exporter(struct sg_error *e);
/* And for the exporter (front/telemetry/exporter.h): it may dial out, to where the settings say,
 * and do nothing else. */
int confine_exporter(struct sg_error *e);
