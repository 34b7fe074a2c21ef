/* Sandboxes that were told to be there (event sandbox.created) and not yet to have ended
 * (sandbox.ended). The list follows the events, in the same transaction (store_events_write), so a
 * server that was killed finds in it what it owes an end. */
#pragma once

#include "front/store/contexts.h"
#include "front/store/store.h"

struct store_living {
    char sandbox_id[ID_LEN + 1], tenant[ID_LEN + 1];
    char context[ID_LEN + 1], conversation[CTX_NAME_MAX + 1], path[CTX_NAME_MAX + 1]; /* or "" */
};

/* All of them, allocated. */
int store_living(struct store *s, struct store_living **ret, size_t *ret_n, struct sg_error *e);
/* One that is there without having been told. */
int store_living_add(struct store *s, const struct store_living *l, struct sg_error *e);

/* Why the sandboxes of the server before ended, if it was not killed. */
enum store_left { STORE_CRASHED, STORE_STOPPED, STORE_RESTORED };
int store_left_note(struct store *s, enum store_left how, struct sg_error *e);
/* And forgets it: whoever starts may be killed. */
int store_left_take(struct store *s, enum store_left *ret, struct sg_error *e);
