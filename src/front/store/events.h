/* Events in the server's own file: the latest of them, the numbers that may have been given out,
 * and marks, such as how far the webhook has come. front/core/events.h says what events are.
 *
 * Writes do not wait for the disk. Only reserving numbers does: no number may be used twice, not
 * even after a power cut. */
#pragma once

#include "lib/base/err.h"

struct store;

struct store_event {
    uint64_t id;
    int64_t ms;
    const char *tenant, *kind, *json;
    const char *sandbox,
        *e2b; /* e2b: the event in E2B's form, of this sandbox; NULL: E2B has none */
};

struct store_events_state {
    uint64_t first, last; /* the numbers of the oldest and newest event; both 0 if there is none */
    uint64_t reserved;    /* numbers up to this one may have been given out */
};
int store_events_state(struct store *s, struct store_events_state *ret, struct sg_error *e);
/* Allows numbers up to `upto` to be given out from now on. */
int store_events_reserve(struct store *s, uint64_t upto, struct sg_error *e);
/* Writes all of the events, or none. */
int store_events_write(struct store *s, const struct store_event *events, size_t n,
                       struct sg_error *e);
/* Deletes all events of a tenant but the last `keep`. */
struct store_trimmed {
    uint64_t gone;     /* the highest number that was deleted; 0: none */
    uint64_t unposted; /* how many of those the webhook had not reached */
};
int store_events_trim(struct store *s, const char *tenant, uint32_t keep, struct store_trimmed *ret,
                      struct sg_error *e);
/* The number up to which the events of a tenant (NULL: of any) are deleted. 1: *ret has it. 0: none
 * is noted, and *ret is unchanged. */
int store_events_gone(struct store *s, const char *tenant, uint64_t *ret, struct sg_error *e);
int store_events_set_gone(struct store *s, const char *tenant, uint64_t upto, struct sg_error *e);
/* Calls fn for the events with after < number < before, in order, until fn returns false. fn must
 * not use the store. tenant NULL: of all tenants; else the tenant's own, and those of
 * STORE_EVERYBODY. */
#define STORE_EVERYBODY "*"
int store_events_each(struct store *s, const char *tenant, uint64_t after, uint64_t before,
                      bool (*fn)(const struct store_event *ev, void *arg), void *arg,
                      struct sg_error *e);

/* Events that E2B has too, in its form. */
struct store_e2b_query {
    const char *tenant;
    const char *sandbox; /* NULL: of all */
    const char *kinds;   /* " sandbox.created sandbox.ended "; NULL: all */
    bool oldest_first;
    uint32_t offset, limit;
};
int store_events_e2b(struct store *s, const struct store_e2b_query *q,
                     void (*fn)(const char *e2b, void *arg), void *arg, struct sg_error *e);

/* Numbers that are kept under a name. get: 1: *ret has it. 0: there is none, and *ret is
 * unchanged. */
#define STORE_WEBHOOK_MARK "webhook"
int store_mark_get(struct store *s, const char *name, uint64_t *ret, struct sg_error *e);
int store_mark_set(struct store *s, const char *name, uint64_t value, struct sg_error *e);
