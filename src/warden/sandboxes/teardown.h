/* Teardowns: sandboxes that are being ended. The warden does not wait for them: it checks each when
 * its pid 1 has ended, and at its deadline. */
#pragma once

#include "warden/providers/provider.h"

struct tenant_pool;

/* Kills the instance, which belongs to the teardown from now on. `done` (may be NULL) is called
 * when nothing of it is left; r < 0: it would not die, and its slot is lost. */
typedef void (*teardown_done)(void *arg, int r, const struct sg_error *e);
void teardown_begin(struct tenant_pool *w, struct instance *i, teardown_done done, void *arg);
