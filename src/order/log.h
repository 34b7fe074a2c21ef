/* The server's log: one line an event on standard error, logfmt on a terminal and JSON elsewhere
 * (setting log), and as JSON in a file that `sandglass logs --server` reads (logfile.h).
 *
 *   time=2026-01-31T12:00:00.123Z level=info layer=sandbox sandbox=k3j... msg=paused
 *   {"time":"2026-01-31T12:00:00.123Z","level":"info","layer":"sandbox","sandbox":"k3j...",
 *    "message":"paused"}
 *
 * Each line says whose doing it is, so that a failure of a user's code is not taken for one of the
 * server: one field, `layer`:
 *
 *   code            the program that a user runs inside
 *   agent           an agent that is hosted inside (acp/), or what serves the sandbox there
 *   sandbox         its limits and its life: memory, disk, processes, its deadline
 *   infrastructure  all that is ours: warden, front, guard, store, the host
 *   client          who called: a bad request, a wrong key, a connection that was dropped
 *
 * Never the content of a note, a key or a file: secrets are a type that cannot be printed
 * (base/hidden.h). Lines are rate-limited (setting log_rate): those beyond are counted, and one
 * line says how many there were. Errors have a share of their own, so that a flood of others does
 * not hide them. */
#pragma once

#include "base/err.h"
#include "order/settings.h"

enum log_layer {
    LAYER_CODE,
    LAYER_AGENT,
    LAYER_SANDBOX,
    LAYER_INFRASTRUCTURE,
    LAYER_CLIENT,
    LAYER_MAX_
};
const char *log_layer_name(enum log_layer layer);

/* What a line is about; NULL or "": that does not apply. */
struct log_about {
    enum log_layer layer;
    const char *sandbox, *tenant, *request, *trace;
};

void log_set(enum settings_log form, enum settings_level level);
/* About this server. */
void log_line(enum settings_level level, const char *fmt, ...) PRINTF(2, 3);
/* About one sandbox's life. */
void log_sandbox(enum settings_level level, const char *id, const char *fmt, ...) PRINTF(3, 4);
void log_with(enum settings_level level, const struct log_about *about, const char *fmt, ...)
    PRINTF(3, 4);
/* How many were written, and suppressed, so far. */
void log_counts(uint64_t *ret_written, uint64_t *ret_suppressed);
