/* The log of a build, in the store: lines of the build itself, and the output of its commands, cut
 * into lines. Both have a limit; output beyond it is dropped, and a line says so. */
#pragma once

#include "front/store/templates.h"
#include "lib/text/strbuf.h"

enum build_log_level { BUILD_DEBUG, BUILD_INFO, BUILD_WARN, BUILD_FAULT };

struct build_log {
    struct store *store;
    char build[STORE_BUILD_LEN + 1];
    char step[STORE_STEP_MAX]; /* what is told from now on is about it: "base", "1", "finalize" */
    char prefix[64];           /* of output, as in "[builder 1/3]" */
    struct strbuf cut[2];      /* lines of stdout and stderr that are not whole */
    size_t lines, bytes;       /* of output */
    bool full;                 /* no more of it is kept */
};

void build_log_init(struct build_log *l, struct store *s, const char *build);
void build_log_done(struct build_log *l);
void build_log_line(struct build_log *l, enum build_log_level level, const char *fmt, ...)
    PRINTF(3, 4);
void build_log_output(struct build_log *l, bool err, const char *p, size_t len);
/* Tells lines that are not whole: their command is over. */
void build_log_flush(struct build_log *l);
