/* Parses the output of an analysis by its declared format. */
#pragma once

#include "front/tools/call.h"
#include "front/tools/gather.h"

#define PARSED_MAX (32u * 1024 * 1024)

/* Parses the standard output, or, if that is blank, the value of the cell. The result is JSON: the
 * value itself; an array of objects for a table; a string for text. */
int parsed_output(const struct gather *g, enum tool_format format, struct strbuf *ret,
                  struct sg_error *e);
/* The value of the cell: its JSON if it has one, else its text as a string. Points into g. NULL:
 * the cell has no value. */
const char *parsed_value(const struct gather *g, size_t *ret_len);

/* csv.c: turns a table as in RFC 4180 (lines may end in LF alone, blank ones are left out) into an
 * array of objects, with the names of the first row as keys. */
int csv_to_json(const char *text, size_t len, struct strbuf *ret, struct sg_error *e);
