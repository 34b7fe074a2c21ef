/* libuv's handles on the heap: whoever uses one lets it go in one call and forgets it. */
#pragma once

#include <uv.h>

#include "lib/base/base.h"

/* A descriptor to be watched; nothing yet. The descriptor stays the caller's and is closed after
 * watch_drop. */
uv_poll_t *watch_new(uv_loop_t *loop, int fd, void *data);
/* events 0: nothing. fn gets a status < 0 when the descriptor has an error, and is called again
 * until it was read. */
void watch_for(uv_poll_t *w, int events, uv_poll_cb fn);
void watch_drop(uv_poll_t **w); /* NULL inside is allowed */

uv_timer_t *alarm_new(uv_loop_t *loop, void *data);
void alarm_set(uv_timer_t *t, uint64_t ns, uv_timer_cb fn);
void alarm_drop(uv_timer_t **t);
