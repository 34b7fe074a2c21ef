/* Teardowns: sandboxes that are being ended. The warden does not wait for them: it checks each when
 * its pid 1 has ended, and at its deadline. */
#pragma once

#include "warden/providers/provider.h"

struct tenant_pool;

/* Kills the instance, which belongs to the teardown from now on. When
 * nothing of it is left, or it would not die and its slot is lost, it is returned to the tenant
 * pool, and then `done` is called, which may be NULL. */
typedef void (*teardown_done)(void *arg);
void teardown_begin(struct tenant_pool *w, struct instance *i, teardown_done done, void *arg);

struct server;

/* Forgets all, at the server's end: closing the tenant pools ends what is left of them. Without this
 * their timers and processes would still be in the loop, which turns once more after that. */
void teardowns_close(struct server *s);
