/* The log of one sandbox: what happened to it, and what its programs wrote, a line an entry.
 *
 * It is kept in memory, bounded, oldest first out; nothing of it goes to disk. `fault` tells whose
 * doing an entry is (lib/log/log.h). */
#pragma once

#include "lib/base/base.h"
#include "lib/log/log.h"

#define SANDBOX_LOG_BYTES (256u * 1024) /* of text, for a sandbox */
#define SANDBOX_LOG_LINE  4096          /* of one entry; longer ones are cut */

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
};

void sandbox_log_done(struct sandbox_log *l);
void sandbox_log_add(struct sandbox_log *l, enum log_level level, enum fault fault, uint32_t pid,
                     const char *fmt, ...) PRINTF(5, 6);
/* A piece of a program's output: split into lines, each an entry of its own. */
void sandbox_log_output(struct sandbox_log *l, uint32_t pid, const char *stream, const void *data,
                        size_t len);
size_t sandbox_log_count(const struct sandbox_log *l);
const struct log_entry *sandbox_log_get(const struct sandbox_log *l,
                                        size_t i); /* 0 is the oldest */
const char *log_level_name(enum log_level level);
/* LOG_LEVEL_MAX_ if there is none of that name. */
enum log_level log_level_parse(const char *name);
