/* How sandboxes end (enum order_end): the word that events and counters have, a sentence for
 * people, and whose doing it is. Warden and front have one table, so that a log, an event and an
 * answer cannot blame different ones for the same end. */
#pragma once

#include "lib/log/log.h"

struct end_kind {
    const char *word, *text;
    enum fault fault;
    bool wanted; /* it was told to end, or its time was over: that is no news to its user */
};

/* Of a number that is none: as END_FAILED. */
const struct end_kind *end_kind(uint32_t end);
/* Its sentence; detail, if there is one, says it better. */
const char *end_text(uint32_t end, const char *detail);
