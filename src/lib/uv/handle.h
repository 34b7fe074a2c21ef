/* libuv's handles on the heap: callers drop one with a single call and need not wait for its
 * close. */
#pragma once

#include <uv.h>

#include "lib/base/base.h"

/* Makes a watch for a descriptor; it watches for nothing yet. The descriptor stays the caller's,
 * who closes it after watch_drop. */
uv_poll_t *watch_new(uv_loop_t *loop, int fd, void *data);
/* events 0: watch for nothing. If the descriptor has an error, fn gets a status < 0, again and
 * again until the error was read. */
void watch_for(uv_poll_t *w, int events, uv_poll_cb fn);
void watch_drop(uv_poll_t **w); /* *w may be NULL */

/* Starts an embedded timer that fires every `ms`, and does not keep the loop running. */
void timer_every(uv_loop_t *loop, uv_timer_t *t, uint64_t ms, uv_timer_cb fn, void *data);

uv_timer_t *alarm_new(uv_loop_t *loop, void *data);
void alarm_set(uv_timer_t *t, uint64_t ns, uv_timer_cb fn);
void alarm_drop(uv_timer_t **t);
