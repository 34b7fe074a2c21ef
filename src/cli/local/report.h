/* Telling the outcome of a run: as one JSON object, or as a line on what ended it. */
#pragma once

#include <sandglass.h>

#include "lib/text/strbuf.h"

/* The ExecutionResult. Appends an object and a newline. `results` are those of a cell, JSON objects
 * with a line end each. */
void report_json(struct strbuf *out, const struct sg_result *r, const struct strbuf *results);
/* The same for a program that never ran: resource_usage and limits_applied are null. */
void report_setup_json(struct strbuf *out, const struct sg_error *e, uint64_t duration_us);
/* "memory limit of 64 MiB reached: ...", or how a signal ended the program; false: nothing to say.
 */
bool report_line(char *buf, size_t cap, const struct sg_result *r);
