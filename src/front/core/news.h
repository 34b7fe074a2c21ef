/* What the guard tells of connections that ended or were refused (ASK_NEWS, wire/guard.h), handed
 * to all who want to know: figures, what the sandbox has used, events, the trace of what runs in
 * it. */
#pragma once

#include "wire/guard.h"
#include "front/core/front.h"

/* Refused connections of a sandbox become events, but not a flood of them. */
#define NEWS_EVENTS_A_SECOND 5

/* They were checked: ids are ids, texts end. */
void egress_news_take(struct front *f, const struct egress_news *news, size_t n);
/* Known verdicts are 0 before the first of them. */
void egress_news_start(void);
