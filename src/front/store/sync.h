/* Takes the waiting for the disk off the loop's thread.
 *
 * A commit writes to the log of the database (server.db-wal) and returns. A thread then syncs the
 * log, and every commit that was made before is kept. Whoever tells of a change waits for that:
 * answers over HTTP (http_server_commits) and orders to the warden that make or remove what the store
 * names (front/core/warden.c). Several commits share one sync.
 *
 * Another thread moves a log that has become long into the database, which needs two more syncs. It
 * has a connection of its own. The loop still waits for the disk once when it begins the log anew after
 * that, and if commits come so fast that the thread is never done. */
#pragma once

#include <uv.h>

#include "lib/base/commits.h"
#include "front/store/store.h"

/* From now on durable changes are counted in `c`, and are kept later. `synced` is called whenever
 * c->kept has grown, or with an error, after which nothing more is kept: the file may have lost what
 * was written, and only a new start can tell. */
int store_sync_start(struct store *s, uv_loop_t *loop, struct commits *c,
                     void (*synced)(void *arg, int r), void *arg, struct sg_error *e);
