/* Events in the server's own file: the last of them, the number up to which numbers may have been
 * given out, and where the webhook has come to. front/core/events.h says what they are.
 *
 * Writes do not wait for the disk, but for the numbers: none may be used twice, not even after a
 * power cut. */
#pragma once

#include "lib/base/err.h"

struct store;

struct store_event {
    uint64_t id;
    int64_t ms;
    const char *tenant, *kind, *json;
};

struct store_events_state {
    uint64_t first, last; /* numbers that are kept; both 0 if none is */
    uint64_t reserved;    /* what may have been given out */
};
int store_events_state(struct store *s, struct store_events_state *ret, struct sg_error *e);
/* From now on numbers up to this one may be given out. */
int store_events_reserve(struct store *s, uint64_t upto, struct sg_error *e);
/* All of them, or none. */
int store_events_write(struct store *s, const struct store_event *events, size_t n,
                       struct sg_error *e);
/* Forgets all of a tenant but the last `keep`. */
struct store_trimmed {
    uint64_t gone;     /* the highest number that is; 0: none was forgotten */
    uint64_t unposted; /* of those, that the webhook had not come to */
};
int store_events_trim(struct store *s, const char *tenant, uint32_t keep, struct store_trimmed *ret,
                      struct sg_error *e);
/* Up to this number those of a tenant (NULL: of anybody) are not kept any more. 1; 0: nothing is
 * noted, and *ret as it is. */
int store_events_gone(struct store *s, const char *tenant, uint64_t *ret, struct sg_error *e);
int store_events_set_gone(struct store *s, const char *tenant, uint64_t upto, struct sg_error *e);
/* Those with after < number < before, in order, until fn says false, which must not use the store.
 * tenant NULL: of all; else its own and those of STORE_EVERYBODY. */
#define STORE_EVERYBODY "*"
int store_events_each(struct store *s, const char *tenant, uint64_t after, uint64_t before,
                      bool (*fn)(const struct store_event *ev, void *arg), void *arg,
                      struct sg_error *e);

#define STORE_WEBHOOK_OPEN 4
/* All events up to `done` were begun; those that are open were not taken yet. */
struct store_webhook {
    uint64_t done;
    size_t n;
    struct {
        uint64_t event;
        uint32_t tries;
    } open[STORE_WEBHOOK_OPEN];
};
/* -ENOENT: nothing was noted ever. */
int store_webhook_get(struct store *s, struct store_webhook *ret, struct sg_error *e);
int store_webhook_set(struct store *s, const struct store_webhook *w, struct sg_error *e);
