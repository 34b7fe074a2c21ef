/* What was used, as servers tell it in JSON and as people read it. */
#pragma once

#include "lib/text/strbuf.h"

struct json_t;

/* Seconds, or GiB times seconds: more digits the smaller it is. Returns buf. */
char *usage_number(double value, char *buf, size_t cap);
/* An amount such as "1.2345" in whole cents: "1.23"; "<0.01" for less than half a one. Returns buf.
 */
char *usage_cents(const char *amount, char *buf, size_t cap);
/* Appends all of it in one line. */
void usage_sentence(struct strbuf *out, const struct json_t *usage);
