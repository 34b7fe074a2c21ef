/* Formats usage, which servers tell in JSON, for people. */
#pragma once

#include "lib/text/strbuf.h"

struct json_t;

/* Formats seconds, or GiB times seconds, with more digits the smaller the value. Returns buf. */
char *usage_number(double value, char *buf, size_t cap);
/* Rounds an amount such as "1.2345" to whole cents: "1.23"; "<0.01" for less than half a cent.
 * Returns buf. */
char *usage_cents(const char *amount, char *buf, size_t cap);
/* Appends the whole usage as one line. */
void usage_sentence(struct strbuf *out, const struct json_t *usage);
