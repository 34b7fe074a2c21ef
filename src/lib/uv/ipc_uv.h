/* A link (lib/ipc/link.h) in a loop of libuv. Open and close it with ipc_link_open and
 * ipc_link_close. */
#pragma once

#include <uv.h>

#include "lib/ipc/calls.h"

struct ipc_uv {
    struct ipc_link link;
    uv_loop_t *loop;
    uv_poll_t *watch;  /* NULL: the link is closed */
    uv_timer_t *alarm; /* NULL: no call has a deadline */
};

void ipc_uv_init(struct ipc_uv *u, uv_loop_t *loop, const struct ipc_kind *kind);
