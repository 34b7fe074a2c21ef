/* Events for who does not want to ask for them: each is posted to webhook_url as JSON, signed.
 *
 *   Sandglass-Event: sandbox.created
 *   Sandglass-Delivery: 42                      the event's number: the same in every try
 *   Sandglass-Signature: t=1700000000,v1=HEX    HMAC-SHA256 of "<t>.<body>" with webhook_secret
 *
 * Delivered at least once. 2xx is taken; 4xx but 408, 425 and 429 is given up at once; all else,
 * and no answer, is tried again after 1 s, 2 s... 5 min, WEBHOOK_TRIES times.
 *
 *   begun, up to which all were looked at ---+
 *                                            v
 *   events:   ... taken  taken  OPEN  taken  OPEN | next  next ...
 *
 * In order while the other side keeps up: the next one is begun when the one before was taken. One
 * that fails holds the others up for its first WEBHOOK_HOLD tries, then they go past it; if many
 * wait, STORE_WEBHOOK_OPEN are on their way at a time. What is open, and where the rest begins, is
 * in the store, so that the next front goes on. Events that are not kept any more (event_keep) when
 * it is their turn are given up. */
#pragma once

#include "front/core/front.h"

#define WEBHOOK_TRIES 12
#define WEBHOOK_HOLD  3

struct exporter;
/* After events_start. Without a webhook_url nothing is posted, and what happens until there is one
 * never will be. */
void webhooks_start(struct front *f, struct exporter *h);
/* The settings have changed. */
void webhooks_configure(struct front *f);
/* What is not written down yet is, now: for a server that ends. */
void webhooks_flush(void);

/* How long until the next try, after so many; random: any number. */
uint64_t webhook_delay_ms(uint32_t tries, uint32_t random, uint64_t asked_ms);
/* What delays are counted in; tests make it shorter. */
extern uint64_t webhook_second_ms;
