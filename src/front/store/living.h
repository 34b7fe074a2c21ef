/* The list of sandboxes whose start was told (event sandbox.created) but not yet their end
 * (sandbox.ended). The list changes in the transaction that writes the event (store_events_write).
 * After a kill, the next server finds in it the sandboxes whose end it still has to tell. */
#pragma once

#include "front/store/contexts.h"
#include "front/store/store.h"

struct store_living {
    char sandbox_id[ID_LEN + 1], tenant[ID_LEN + 1];
    char context[ID_LEN + 1], conversation[CTX_NAME_MAX + 1], path[CTX_NAME_MAX + 1]; /* or "" */
};

/* The whole list, allocated. */
int store_living(struct store *s, struct store_living **ret, size_t *ret_n, struct sg_error *e);
/* Adds a sandbox that lives although no event told its start. */
int store_living_add(struct store *s, const struct store_living *l, struct sg_error *e);

/* How the server before ended, and with it its sandboxes. Without a note it was killed. */
enum store_left { STORE_CRASHED, STORE_STOPPED, STORE_RESTORED };
int store_left_note(struct store *s, enum store_left how, struct sg_error *e);
/* Reads the note and deletes it, since the server that starts now may be killed too. */
int store_left_take(struct store *s, enum store_left *ret, struct sg_error *e);
