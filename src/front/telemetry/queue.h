/* Spans that wait to be sent, encoded, oldest first: TRACE_QUEUE_MAX of them, TRACE_QUEUE_SIZE
 * bytes.
 *
 * They are numbered as they come. Who sends them remembers up to which number it has got; when
 * there is no room, the oldest goes, whether that one was sent or not. So a target that is down
 * holds no other up, and two cost no more than one. */
#pragma once

#include "front/telemetry/otlp.h"

struct queue_record {
    uint64_t came_ns;
    uint64_t before; /* bytes of all that came before it, ever */
    const struct otlp_form *form;
    size_t len;
    char bytes[];
};

void queue_push(const struct otlp_form *form, const char *bytes, size_t len, uint64_t now_ns);
/* The number of the oldest that is there, and of the next that will come; equal: there is none. */
uint64_t queue_first(void);
uint64_t queue_next(void);
const struct queue_record *queue_get(uint64_t number);
/* Bytes of those from this one on. */
uint64_t queue_bytes_from(uint64_t number);
/* Nobody needs those before. */
void queue_release(uint64_t number);
