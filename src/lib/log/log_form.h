/* One line of the log, as text.
 *
 * Whatever comes in, one line of UTF-8 without control characters goes out, of at most LOG_LINE_MAX
 * bytes: a line can neither be forged nor change a terminal, and a pipe takes it whole or not at
 * all. A text that was cut ends with "...". */
#pragma once

#include "lib/text/strbuf.h"
#include "lib/log/log.h"

#define LOG_LINE_MAX 4096 /* the system's PIPE_BUF */

struct log_record {
    int64_t ms; /* since 1970 */
    enum settings_level level;
    struct log_about about;
    const char *message;
};

/* Each appends one line, with its newline. */
void log_form_json(const struct log_record *r, struct strbuf *out);
void log_form_text(const struct log_record *r, struct strbuf *out);
