/* The guard's news of connections that ended or were refused (ASK_NEWS, wire/guard.h). They are
 * passed on to figures, to the usage of the sandbox, to events, and to the trace of the operation
 * that runs in the sandbox. */
#pragma once

#include "wire/guard.h"
#include "front/core/front.h"

/* Refused connections become events, at most so many a second for each sandbox. */
#define NEWS_EVENTS_A_SECOND 5

/* Passes news on. The caller has checked them: ids are valid, texts are terminated. */
void egress_news_take(struct front *f, const struct egress_news *news, size_t n);
const char *egress_verdict_name(uint8_t verdict);
/* Called at the start: sets the counters of all known verdicts to 0, so that they show before the
 * first of each. */
void egress_news_start(void);
