/* Faults of the server's processes: logged, and counted for the metrics
 * (sandglass_process_faults_total). */
#pragma once

#include "wire/warden.h"
#include "warden/host/child.h"

struct server;

void fault_count(struct server *s, enum process p, enum process_fault why);
/* The process ended, and should not have. */
void fault_count_end(struct server *s, enum process p, const struct child_exit *how);
/* "was killed by SIGSEGV", "exited with status 1". */
#define FAULT_TEXT 48
void fault_describe(const struct child_exit *how, char ret[FAULT_TEXT]);
