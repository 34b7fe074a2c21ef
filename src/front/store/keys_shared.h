/* Keys of all servers that share a database. Each checks keys against its own file (store.h), so
 * that clients come in while the database is away; this keeps the files alike.
 *
 *   every KEYS_EVERY_MS, and at the start:
 *     take   what has changed in the database since the last look
 *     tell   all of ours, if something has changed here
 *
 * A key is known by its id. Revoked wins, wherever it was revoked. If the database was put back to
 * an earlier state, all is taken and told again. */
#pragma once

#include <uv.h>

#include "front/store/dbworker.h"
#include "front/store/store.h"

#define KEYS_EVERY_MS 2000

struct keys_shared;

/* c: connected. Both must live until keys_shared_stop, which comes before dbworker_dismiss. */
struct keys_shared *keys_shared_start(uv_loop_t *loop, struct store *s, struct dbworker *c);
void keys_shared_stop(struct keys_shared *k);
