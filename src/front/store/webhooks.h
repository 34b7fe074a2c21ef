/* Webhooks in the server's own file: those of tenants, and how far each has come, the operator's
 * (the setting webhook_url) too. front/core/webhooks.h says what they do. */
#pragma once

#include "lib/base/err.h"
#include "lib/base/ids.h"
#include "lib/base/uuid.h"

struct store;

#define STORE_WEBHOOKS_MAX 20 /* of one tenant */
#define WEBHOOK_NAME_MAX   128
#define WEBHOOK_URL_MAX    1024
#define WEBHOOK_EVENTS_MAX 512 /* the list, as text */
#define WEBHOOK_SECRET_MAX 512

struct store_hook {
    int64_t seq; /* grows with each that is made */
    char id[UUID_LEN + 1], tenant[ID_LEN + 1];
    const char *name, *url, *secret;
    const char *events; /* E2B's types, with commas between */
    bool enabled;
    int64_t created_ms;
};
/* Makes it; hook->seq and created_ms are set here. -EDQUOT: the tenant has STORE_WEBHOOKS_MAX. */
int store_hook_add(struct store *s, const struct store_hook *hook, struct sg_error *e);
/* Writes all fields of the one with this tenant and id. -ENOENT. */
int store_hook_set(struct store *s, const struct store_hook *hook, struct sg_error *e);
/* Calls fn with it. -ENOENT: it is not there, or another tenant's. */
int store_hook_get(struct store *s, const char *tenant, const char *id,
                   void (*fn)(const struct store_hook *hook, void *arg), void *arg,
                   struct sg_error *e);
int store_hook_remove(struct store *s, const char *tenant, const char *id, struct sg_error *e);
/* Calls fn for each, the oldest first; tenant NULL: of all tenants. fn must not use the store. */
int store_hooks_each(struct store *s, const char *tenant,
                     void (*fn)(const struct store_hook *hook, void *arg), void *arg,
                     struct sg_error *e);

#define STORE_WEBHOOK_OPEN 4
/* The progress of a webhook. Posting has begun for all events up to `done`; those in `open` have not
 * been accepted yet. */
struct store_webhook {
    uint64_t done;
    size_t n;
    struct {
        uint64_t event;
        uint32_t tries;
    } open[STORE_WEBHOOK_OPEN];
};
/* hook: its id; "" is the operator's. -ENOENT: no progress was ever noted. */
int store_webhook_get(struct store *s, const char *hook, struct store_webhook *ret,
                      struct sg_error *e);
int store_webhook_set(struct store *s, const char *hook, const struct store_webhook *w,
                      struct sg_error *e);
