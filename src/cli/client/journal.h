/* One entry of a sandbox's log, or of a server's. */
#pragma once

#include "lib/text/strbuf.h"

#define JOURNAL_LINE_MAX (1024u * 1024)

struct json_t;

enum journal_level { JOURNAL_DEBUG, JOURNAL_INFO, JOURNAL_WARN, JOURNAL_ERROR, JOURNAL_MAX_ };

int journal_level_parse(const char *name, enum journal_level *ret);
int64_t journal_ms(const struct json_t *entry); /* 0 if it has no time */
/* An entry without a level, as old servers send them, is JOURNAL_INFO. */
enum journal_level journal_level(const struct json_t *entry);
/* Appends the entry as one line, without its end:
 * "2026-03-01 13:30:00.250  WARN   message  key=value" */
void journal_format(const struct json_t *entry, struct strbuf *out, bool colours);
/* The same for a line of a server's own log, with the layer before the message. */
void journal_format_server(const struct json_t *line, struct strbuf *out, bool colours);
