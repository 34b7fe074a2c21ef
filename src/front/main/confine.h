/* The rights that the front gives up before it reads the first byte from outside. The front starts
 * without privilege (warden/processes/front_process.c). Here it also forbids itself everything that
 * it never does: starting programs, dialling out, and the system calls that kernels are attacked
 * with. An attacker who takes over the front can then neither run a program nor open a connection:
 * only the descriptors that the front already has are left. */
#pragma once

#include "lib/base/err.h"

int confine_front(struct sg_error *e);
/* The same for the database worker (front/store/dbworker.h), a process beside the front. It may
 * dial out, to the database. Clients reach it only through the statement parameters that the front
 * hands it. */
int confine_dbworker(struct sg_error *e);
/* The same for the exporter (front/telemetry/exporter.h). It may dial out, to the addresses in the
 * settings, and do nothing else. */
int confine_exporter(struct sg_error *e);
