/* Events in the form that E2B gives them: for `GET /events/sandboxes` and for tenants' webhooks.
 *
 *   ours                                        E2B's, after "sandbox.lifecycle."
 *   sandbox.created, paused, resumed, updated   the same
 *   sandbox.snapshot                            checkpointed
 *   sandbox.ended                               killed
 *
 * The others have no such form. It is made when the event happens, and stored with it: what it says
 * of the sandbox is gone later. Webhooks get it as it is; the API has other names for the same
 * fields.
 *
 * A sandbox's metadata are its owner's, and never in the clear on disk: in the stored form they are
 * sealed (lib/vault) for this tenant and sandbox. The key is in the front's own directory
 * (E2B_EVENT_KEY), and in no database. */
#pragma once

#include <jansson.h>

#include "front/core/events.h"

#define E2B_EVENT_KEY "events.key"

/* Opens the key, or makes it. Without a call the key lives as long as the process. */
int e2b_event_begin(const struct store *s, struct sg_error *e);

/* E2B's name for a kind of event; NULL: it has none. */
const char *e2b_event_type(enum event_kind kind);
/* The kind of a name of E2B's. False: there is none. */
bool e2b_event_kind(const char *type, size_t len, enum event_kind *ret);
/* Returns the event as one JSON object as it is stored, to be freed; NULL: E2B has none. */
char *e2b_event_write(enum event_kind kind, int64_t ms, const struct event_about *about);
/* The event as it is told. Metadata that another key has sealed are left out. NULL: it is no event. */
json_t *e2b_event_read(const char *stored);
/* Parses a list such as "sandbox.lifecycle.created,sandbox.lifecycle.killed" into a set with one bit
 * for each kind. */
uint32_t e2b_event_kinds(const char *list);

struct e2b_event_field {
    const char *webhook, *api;
};
/* The fields, and what both call them; ends at a NULL. */
extern const struct e2b_event_field e2b_event_fields[];
