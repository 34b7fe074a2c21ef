/* The server's log: one line an event on standard error, as text or as JSON.
 *
 *   2026-01-31T12:00:00.123Z info sandbox k3j…: paused
 *   {"time":"2026-01-31T12:00:00.123Z","level":"info","sandbox":"k3j…","message":"paused"}
 *
 * Never the content of a note, a key or a file. */
#pragma once

#include "base/err.h"
#include "order/settings.h"

void log_set(enum settings_log form, enum settings_level level);
void log_line(enum settings_level level, const char *fmt, ...) PRINTF(2, 3);
/* About one sandbox. */
void log_sandbox(enum settings_level level, const char *id, const char *fmt, ...) PRINTF(3, 4);
