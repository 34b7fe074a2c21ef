/* The log of one sandbox: what happened to it and what its programs wrote, one entry a line.
 *
 * The log is kept in memory and never written to disk. The next front gets it (journal.h). Its size
 * is limited; the oldest entries go first. `fault` says who caused an entry (lib/log/log.h). */
#pragma once

#include "lib/base/base.h"
#include "lib/base/ids.h"
#include "lib/log/log.h"

#define SANDBOX_LOG_BYTES (256u * 1024) /* of text, for one sandbox */
#define SANDBOX_LOG_LINE  4096          /* longer entries are cut */

enum log_level { LOG_DEBUG, LOG_INFO, LOG_WARN, LOG_ERROR, LOG_LEVEL_MAX_ };

struct log_entry {
    int64_t ms; /* wall clock */
    enum log_level level;
    enum fault fault;
    uint32_t pid;       /* 0: none */
    const char *stream; /* "stdout", "stderr", "pty", or NULL */
    uint32_t len;
    char text[]; /* NUL-terminated */
};

struct sandbox_log {
    struct log_entry **ring; /* NULL until something is logged */
    size_t first, n, cap, bytes;
    char id[ID_LEN + 1]; /* of the sandbox, for the next front; "": nobody gets it */
};

void sandbox_log_done(struct sandbox_log *l);
void sandbox_log_add(struct sandbox_log *l, enum log_level level, enum fault fault, uint32_t pid,
                     const char *fmt, ...) PRINTF(5, 6);
/* Adds a piece of a program's output: it is split into lines, and each line becomes an entry. */
void sandbox_log_output(struct sandbox_log *l, uint32_t pid, const char *stream, const void *data,
                        size_t len);
/* Adds an entry as it was: ms, level, fault, pid and stream are those of `head`. */
void sandbox_log_restore(struct sandbox_log *l, const struct log_entry *head, const char *text,
                         size_t len);
size_t sandbox_log_count(const struct sandbox_log *l);
const struct log_entry *sandbox_log_get(const struct sandbox_log *l,
                                        size_t i); /* 0 is the oldest */
const char *log_level_name(enum log_level level);
/* Returns LOG_LEVEL_MAX_ if no level has that name. */
enum log_level log_level_parse(const char *name);
