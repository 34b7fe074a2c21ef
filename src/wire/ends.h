/* How sandboxes end (enum order_end). Each end has a word for events and counters, a sentence for
 * people, and a fault: whose doing it is. Warden and front share one table, so that a log, an event
 * and an answer cannot blame different parties for the same end. */
#pragma once

#include "lib/log/log.h"

struct end_kind {
    const char *word, *text;
    enum fault fault;
    bool wanted; /* the sandbox was told to end, or its time was over: no news to its user */
};

/* A number that is no end gives the row of END_FAILED. */
const struct end_kind *end_kind(uint32_t end);
/* The sentence for people: detail if there is one, since it is more precise, else the table's. */
const char *end_text(uint32_t end, const char *detail);
