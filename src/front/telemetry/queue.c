#include "front/telemetry/queue.h"

#include <assert.h>
#include <string.h>

static struct {
    struct queue_record *ring[TRACE_QUEUE_MAX];
    uint64_t first, next;
    uint64_t bytes; /* of all spans that ever came */
} queue;

uint64_t queue_first(void)
{
    return queue.first;
}

uint64_t queue_next(void)
{
    return queue.next;
}

const struct queue_record *queue_get(uint64_t number)
{
    assert(number >= queue.first && number < queue.next);
    return queue.ring[number % TRACE_QUEUE_MAX];
}

uint64_t queue_bytes_from(uint64_t number)
{
    return number < queue.next ? queue.bytes - queue_get(number)->before : 0;
}

void queue_release(uint64_t number)
{
    while (queue.first < number && queue.first < queue.next) {
        free(queue.ring[queue.first % TRACE_QUEUE_MAX]);
        queue.ring[queue.first++ % TRACE_QUEUE_MAX] = NULL;
    }
}

void queue_push(const struct otlp_form *form, const char *bytes, size_t len, uint64_t now_ns)
{
    struct queue_record *r = xcalloc(1, sizeof(*r) + len);

    r->came_ns = now_ns;
    r->before = queue.bytes;
    r->form = form;
    r->len = len;
    memcpy(r->bytes, bytes, len);
    queue.bytes += len;
    while (queue.next - queue.first == TRACE_QUEUE_MAX ||
           queue_bytes_from(queue.first) > TRACE_QUEUE_SIZE)
        queue_release(queue.first + 1);
    queue.ring[queue.next++ % TRACE_QUEUE_MAX] = r;
}
