/* The output of an analysis, by the format that was declared. */
#pragma once

#include "front/tools/call.h"
#include "front/tools/gather.h"

#define PARSED_MAX (32u * 1024 * 1024)

/* What was written to standard output; if that is nothing, the value of the cell. As JSON: the
 * value itself; an array of objects for a table; a string for text. */
int parsed_output(const struct gather *g, enum tool_format format, struct strbuf *ret,
                  struct sg_error *e);
/* The value of the cell: its JSON if it has one, else its text as a string. Points into g; NULL if
 * it has none. */
const char *parsed_value(const struct gather *g, size_t *ret_len);

/* csv.c: a table as RFC 4180 has it (lines may end in LF alone, blank ones are left out) to an
 * array of objects by the names of its first row. */
int csv_to_json(const char *text, size_t len, struct strbuf *ret, struct sg_error *e);
