/* A span in memory, from its begin until it is encoded (otlp.h) and queued (queue.h).
 *
 * A span is one allocation of a fixed size; its texts, usually few and short, have allocations of
 * their own. Texts are cut and made valid UTF-8 when they come in, so that the encoders can use
 * them as they are. */
#pragma once

#include "front/telemetry/trace.h"
#include "lib/base/list.h"

#define SPAN_DETAILS_MAX 4
#define SPAN_DETAIL_MAX  1024          /* of a text of an event, and of a status */
#define SPAN_TEXTS_MAX   (256u * 1024) /* all texts of one span */

enum span_value_type { SPAN_TEXT, SPAN_NUMBER, SPAN_FLAG };

struct span_value {
    union {
        char *text;
        int64_t number;
    };
    uint32_t len; /* of the text */
    uint8_t key, type;
};

struct span_happening {
    struct list link;
    uint64_t ns;
    const char *name;
    size_t n;
    struct span_value values[SPAN_DETAILS_MAX];
};

struct span_lap {
    enum span_name name;
    uint64_t begin_ns, end_ns;
};

struct span {
    enum span_name name;
    bool is_step, failed;
    struct trace_ref ref, parent;
    uint64_t begin_ns, end_ns;
    int64_t wall_ns; /* added to the two, gives the time since 1970 */
    struct span_value values[SPAN_ATTRS_MAX];
    uint32_t n_values, n_events, n_steps;
    uint32_t lost_values, lost_events;
    size_t texts; /* bytes of all texts */
    struct list events;
    struct span_lap steps[SPAN_STEPS_MAX];
    char *message; /* why the span failed; NULL if that is not known */
};
