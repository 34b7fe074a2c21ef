/* Webhooks: events are posted as signed JSON, for receivers that do not want to poll.
 *
 * The operator's (the setting webhook_url) gets the events of all tenants, as GET /v1/events has
 * them:
 *
 *   Sandglass-Event: sandbox.created
 *   Sandglass-Delivery: 42                      the event's number: the same in every try
 *   Sandglass-Signature: t=1700000000,v1=HEX    HMAC-SHA256 of "<t>.<body>" with webhook_secret
 *
 * Tenants make their own, in E2B's form (front/e2b/webhooks.c). Each gets its tenant's events, as
 * e2b_event.h has them:
 *
 *   e2b-webhook-id: UUID
 *   e2b-delivery-id: UUID                       another one in every try
 *   e2b-signature-version: v1
 *   e2b-signature: BASE64                       SHA-256 of the secret and the body, without "="
 *
 * Where a tenant's may go is the operator's choice (the setting webhook_targets, lib/web/hosts.h):
 * it is judged when the webhook is made, at each post, and once more at the address that its name
 * leads to (front/telemetry/exporter.h). Each event is delivered at least once: poster.h says how. */
#pragma once

#include "front/core/poster.h"

struct exporter;
/* Called after events_start. Events that happen before a webhook is there are never posted to it. */
void webhooks_start(struct front *f, struct exporter *h);
/* Applies changed settings. */
void webhooks_configure(struct front *f);
/* Applies what the store says now of a tenant's webhook: it was made, changed or removed. */
void webhooks_changed(struct front *f, const char *tenant, const char *id);
/* Whether a tenant's may go to this address: 0, -EINVAL, or -EPERM with the reason. *ret_inside: it
 * may be at an address inside. */
int webhooks_judge(const struct front *f, const char *url, bool *ret_inside, struct sg_error *e);
/* Writes the state to the store if it has changed: for a server that is about to end. */
void webhooks_flush(void);
