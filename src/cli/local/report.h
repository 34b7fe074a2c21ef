/* Reports the outcome of a run: as one JSON object, or as a line that says what ended the
 * program. */
#pragma once

#include <sandglass.h>

#include "lib/text/strbuf.h"

/* Appends the run's ExecutionResult as a JSON object and a newline. `results` are the results of a
 * cell: JSON objects, each followed by a newline. */
void report_json(struct strbuf *out, const struct sg_result *r, const struct strbuf *results);
/* The same for a program that never ran: resource_usage and limits_applied are null. */
void report_setup_json(struct strbuf *out, const struct sg_error *e, uint64_t duration_us);
/* Writes "memory limit of 64 MiB reached: ..." or which signal ended the program. False if there is
 * nothing to say. */
bool report_line(char *buf, size_t cap, const struct sg_result *r);
