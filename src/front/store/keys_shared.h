/* Shares API keys between all servers that use one database. Each server checks keys against its
 * own file (store.h), so that clients can work while the database is away; this code keeps the
 * files alike.
 *
 *   every KEYS_EVERY_MS, and at the start:
 *     take   the keys that changed in the database since the last time
 *     tell   all of our keys, if one has changed here
 *
 * A key is known by its id. A key that was revoked anywhere is revoked everywhere, and has its latest
 * name everywhere. So do the operator's tokens, which open every server of the database. If the database
 * was put back to an earlier state, the server takes and tells all keys again. */
#pragma once

#include <uv.h>

#include "front/store/dbworker.h"
#include "front/store/store.h"

#define KEYS_EVERY_MS 2000

struct keys_shared;

/* c must be connected. s and c must live until keys_shared_stop, which comes before
 * dbworker_dismiss. */
struct keys_shared *keys_shared_start(uv_loop_t *loop, struct store *s, struct dbworker *c);
void keys_shared_stop(struct keys_shared *k);
