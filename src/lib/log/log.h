/* The server's log: one line an event on standard error, logfmt on a terminal and JSON elsewhere
 * (setting log), and as JSON in a file that `sandglass logs --server` reads.
 *
 *   time=2026-01-31T12:00:00.123Z level=info layer=sandbox sandbox=k3j... msg=paused
 *   {"time":"2026-01-31T12:00:00.123Z","level":"info","layer":"sandbox","sandbox":"k3j...",
 *    "message":"paused"}
 *
 * Each line says whose doing the event is, so that nobody takes a failure of a user's code for one
 * of the server. The field is called `layer`, and its value is the fault:
 *
 *   code            the program that a user runs inside
 *   agent           a hosted agent (front/acp/agents.h), or the sandbox's own agent
 *   sandbox         the sandbox's limits and life: memory, disk, processes, deadline
 *   infrastructure  all that is ours: warden, front, guard, store, the host
 *   client          who called: a bad request, a wrong key, a connection that was dropped
 *
 * The log never holds the content of a note, a key or a file: secrets have a type that cannot be
 * printed (lib/base/hidden.h). Lines are rate-limited (setting log_rate, log_rate.h): the log
 * counts the lines beyond the limit, and one line says how many there were. Errors have a share of
 * their own, so that a flood of other lines does not hide them.
 *
 * Nothing waits for the log: if nobody reads the pipe, or the disk is full, the line is lost.
 *
 *   log_form.c        a line as text
 *   log_rate.c        how many lines a second
 *   warden/logfile.h  the file, which the warden keeps */
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

/* The subject of a line. NULL, "" or 0: the field does not apply. */
struct log_about {
    enum fault fault;
    const char *sandbox_id, *tenant, *request, *trace; /* ids */
    const char *method, *path, *peer;                  /* of a request */
    int status;
    uint64_t ns; /* how long it took */
};

/* Applies log, log_level and log_rate; to be called again after each change. Before the first call,
 * all lines from info on are written. */
void log_set(const struct settings *s);
/* Writes every line as JSON to this descriptor too. It is a file opened for appending, and stays
 * the caller's. -1: to no file. */
void log_to_file(int fd);
/* The warden gives the processes that it starts the log file as this descriptor, if there is
 * one. */
#define LOG_FILE_FD 4
void log_to_inherited_file(void);

/* A line about this server. */
void log_line(enum settings_level level, const char *fmt, ...) PRINTF(2, 3);
/* A line about one sandbox, and whose doing it is. */
void log_sandbox(enum settings_level level, enum fault fault, const char *id, const char *fmt, ...)
    PRINTF(4, 5);
void log_with(enum settings_level level, const struct log_about *about, const char *fmt, ...)
    PRINTF(3, 4);
/* How many lines this process has written and suppressed so far. */
void log_counts(uint64_t *ret_written, uint64_t *ret_suppressed);
