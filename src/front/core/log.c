#include "front/core/log.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "lib/base/clock.h"
#include "front/core/journal.h"

#define RING_FIRST 32u

static const char *const level_names[LOG_LEVEL_MAX_] = {"debug", "info", "warn", "error"};

const char *log_level_name(enum log_level level)
{
    return level_names[level];
}

enum log_level log_level_parse(const char *name)
{
    int i = 0;

    while (i < LOG_LEVEL_MAX_ && strcmp(level_names[i], name) != 0)
        i++;
    return (enum log_level)i;
}

static void drop_oldest(struct sandbox_log *l)
{
    struct log_entry *e = l->ring[l->first];

    l->bytes -= sizeof(*e) + e->len;
    l->first = (l->first + 1) % l->cap;
    l->n--;
    free(e);
}

static void grow(struct sandbox_log *l)
{
    size_t cap = l->cap ? l->cap * 2 : RING_FIRST;
    struct log_entry **ring = xcalloc(cap, sizeof(struct log_entry *));

    for (size_t i = 0; i < l->n; i++)
        ring[i] = l->ring[(l->first + i) % l->cap];
    free(l->ring);
    l->ring = ring;
    l->first = 0;
    l->cap = cap;
}

static struct log_entry *keep(struct sandbox_log *l, const struct log_entry *head, const char *text,
                              size_t len)
{
    len = len < SANDBOX_LOG_LINE ? len : SANDBOX_LOG_LINE;
    struct log_entry *e = xcalloc(1, sizeof(*e) + len + 1);
    *e = *head;
    e->len = (uint32_t)len;
    memcpy(e->text, text, len);
    while (l->n > 0 && l->bytes + sizeof(*e) + len > SANDBOX_LOG_BYTES)
        drop_oldest(l);
    if (l->n == l->cap)
        grow(l);
    l->ring[(l->first + l->n++) % l->cap] = e;
    l->bytes += sizeof(*e) + len;
    return e;
}

static void add(struct sandbox_log *l, const struct log_entry *head, const char *text, size_t len)
{
    struct log_entry *e = keep(l, head, text, len);

    e->ms = clock_wall_ms();
    journal_log(l, e);
}

void sandbox_log_restore(struct sandbox_log *l, const struct log_entry *head, const char *text,
                         size_t len)
{
    keep(l, head, text, len);
}

void sandbox_log_add(struct sandbox_log *l, enum log_level level, enum fault fault, uint32_t pid,
                     const char *fmt, ...)
{
    struct log_entry head = {.level = level, .fault = fault, .pid = pid};
    char text[1024];
    va_list ap;

    va_start(ap, fmt);
    int n = vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    if (n > 0)
        add(l, &head, text, (size_t)n < sizeof(text) ? (size_t)n : sizeof(text) - 1);
}

void sandbox_log_output(struct sandbox_log *l, uint32_t pid, const char *stream, const void *data,
                        size_t len)
{
    bool err = strcmp(stream, "stderr") == 0;
    struct log_entry head = {
        .level = err ? LOG_WARN : LOG_INFO, .fault = FAULT_CODE, .pid = pid, .stream = stream};
    const char *p = data, *end = p + len;

    /* Of a flood only the end would be kept, so the rest is not even split. */
    if (len > SANDBOX_LOG_BYTES)
        p = end - SANDBOX_LOG_BYTES;
    while (p < end) {
        const char *nl = memchr(p, '\n', (size_t)(end - p));
        const char *stop = nl ? nl : end, *next = stop + 1;
        if (stop > p && stop[-1] == '\r') /* terminals end lines with "\r\n" */
            stop--;
        if (stop > p)
            add(l, &head, p, (size_t)(stop - p));
        p = next;
    }
}

size_t sandbox_log_count(const struct sandbox_log *l)
{
    return l->n;
}

const struct log_entry *sandbox_log_get(const struct sandbox_log *l, size_t i)
{
    return l->ring[(l->first + i) % l->cap];
}

void sandbox_log_done(struct sandbox_log *l)
{
    while (l->n > 0)
        drop_oldest(l);
    free(l->ring);
    *l = (struct sandbox_log){0};
}
