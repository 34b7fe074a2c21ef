/* The server's log: one line an event on standard error, logfmt on a terminal and JSON elsewhere
 * (setting log), and as JSON in a file that `sandglass logs --server` reads.
 *
 *   time=2026-01-31T12:00:00.123Z level=info fault=sandbox sandbox=k3j... msg=paused
 *   {"time":"2026-01-31T12:00:00.123Z","level":"info","layer":"sandbox","sandbox":"k3j...",
 *    "message":"paused"}
 *
 * Each line says whose doing it is, so that a failure of a user's code is not taken for one of the
 * server: one field, `fault`:
 *
 *   code            the program that a user runs inside
 *   agent           an agent that is hosted inside (acp/), or what serves the sandbox there
 *   sandbox         its limits and its life: memory, disk, processes, its deadline
 *   infrastructure  all that is ours: warden, front, guard, store, the host
 *   client          who called: a bad request, a wrong key, a connection that was dropped
 *
 * Never the content of a note, a key or a file: secrets are a type that cannot be printed
 * (lib/base/hidden.h). Lines are rate-limited (setting log_rate, log_rate.h): those beyond are
 * counted, and one line says how many there were. Errors have a share of their own, so that a flood
 * of others does not hide them.
 *
 * Nothing waits for the log: a pipe that nobody reads, a disk that is full, and the line is lost.
 *
 *   log_form.c  a line as text     log_rate.c  how many     warden/logfile.h  the file, by the
 * warden
 */
#pragma once

#include "lib/base/err.h"
#include "lib/settings/settings.h"

enum fault {
    FAULT_CODE,
    FAULT_AGENT,
    FAULT_SANDBOX,
    FAULT_INFRASTRUCTURE,
    FAULT_CLIENT,
    FAULT_MAX_
};
const char *fault_name(enum fault fault);

/* What a line is about; NULL, "" or 0: that does not apply. */
struct log_about {
    enum fault fault;
    const char *sandbox_id, *tenant, *request, *trace; /* ids */
    const char *method, *path, *peer;                  /* of a request */
    int status;
    uint64_t ns; /* how long it took */
};

/* log, log_level and log_rate; again after each change. Before it, everything from info on. */
void log_set(const struct settings *s);
/* Every line as JSON to this descriptor too: a file in which each write is an append. It stays the
 * caller's. -1: to none. */
void log_to_file(int fd);
/* The descriptor that warden gives the processes that it starts, if there is a file. */
#define LOG_FILE_FD 4
void log_to_inherited_file(void);

/* About this server. */
void log_line(enum settings_level level, const char *fmt, ...) PRINTF(2, 3);
/* About one sandbox, and whose doing it is. */
void log_sandbox(enum settings_level level, enum fault fault, const char *id, const char *fmt, ...)
    PRINTF(4, 5);
void log_with(enum settings_level level, const struct log_about *about, const char *fmt, ...)
    PRINTF(3, 4);
/* How many were written, and suppressed, so far, by this process. */
void log_counts(uint64_t *ret_written, uint64_t *ret_suppressed);
