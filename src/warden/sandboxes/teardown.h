/* Sandboxes that are being ended. Nothing waits for them: each is looked at when its pid 1 has
 * gone, and at its deadline. */
#pragma once

#include "warden/providers/process/process.h"

struct tenant_pool;

/* Kills it and takes it over. `done` (may be NULL) is called when it is gone, or lost: r < 0. */
typedef void (*teardown_done)(void *arg, int r, const struct sg_error *e);
void teardown_begin(struct tenant_pool *w, struct instance *i, teardown_done done, void *arg);
