/* Encoded spans that wait to be sent, oldest first: at most TRACE_QUEUE_MAX spans and
 * TRACE_QUEUE_SIZE bytes.
 *
 * Spans are numbered as they come. Each target remembers the number that it has reached. When there
 * is no room, the oldest span goes, whether every target has sent it or not. So a target that is
 * down holds up no other, and two targets need no more memory than one. */
#pragma once

#include "front/telemetry/otlp.h"

struct queue_record {
    uint64_t came_ns;
    uint64_t before; /* bytes of all spans that ever came before */
    const struct otlp_form *form;
    size_t len;
    char bytes[];
};

void queue_push(const struct otlp_form *form, const char *bytes, size_t len, uint64_t now_ns);
/* The numbers of the oldest span and of the next that will come. Equal: the queue is empty. */
uint64_t queue_first(void);
uint64_t queue_next(void);
const struct queue_record *queue_get(uint64_t number);
/* The bytes of the spans from this number on. */
uint64_t queue_bytes_from(uint64_t number);
/* Frees the spans before this number: no target needs them. */
void queue_release(uint64_t number);
