/* Webhooks: each event is posted to webhook_url as signed JSON, for receivers that do not want to
 * poll.
 *
 *   Sandglass-Event: sandbox.created
 *   Sandglass-Delivery: 42                      the event's number: the same in every try
 *   Sandglass-Signature: t=1700000000,v1=HEX    HMAC-SHA256 of "<t>.<body>" with webhook_secret
 *
 * Each event is delivered at least once. 2xx: the receiver has accepted it. 4xx except 408, 425 and
 * 429: given up at once. Any other status, or no answer: tried again after 1 s, 2 s... 5 min,
 * WEBHOOK_TRIES times in all.
 *
 *   begun: all events up to here were looked at -----+
 *                                                    v
 *   events: ... accepted  accepted  OPEN  accepted  OPEN | next  next ...
 *
 * Events go out in order while the receiver keeps up: the next one is sent when the one before was
 * accepted. An event that fails holds the others up for its first WEBHOOK_HOLD tries; then they
 * overtake it. If many events wait, STORE_WEBHOOK_OPEN are under way at a time. The store keeps the
 * open events and the place where the rest begins, so that the next front goes on from there. An
 * event that is no longer kept (event_keep) when its turn comes is given up. */
#pragma once

#include "front/core/front.h"

#define WEBHOOK_TRIES 12
#define WEBHOOK_HOLD  3

struct exporter;
/* Called after events_start. Without a webhook_url nothing is posted; events that happen before one
 * is set are never posted. */
void webhooks_start(struct front *f, struct exporter *h);
/* Applies changed settings. */
void webhooks_configure(struct front *f);
/* Writes the state to the store if it has changed: for a server that is about to end. */
void webhooks_flush(void);

/* How long to wait before the next try, after `tries` failures. random: any number. asked_ms:
 * the least wait that the receiver asked for. */
uint64_t webhook_delay_ms(uint32_t tries, uint32_t random, uint64_t asked_ms);
/* The length of the second that delays are counted in; tests make it shorter. */
extern uint64_t webhook_second_ms;
