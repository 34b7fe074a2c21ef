#include "front/interpreter/lines.h"

#include <stdio.h>
#include <string.h>

#include "lib/base/clock.h"

/* The shared buffer. It is empty between calls: the front's loop is one thread, and no part of a
 * line is kept for an execution. */
static struct lines_buffer shared;

static struct lines_buffer *buffer_of(const struct lines *l)
{
    return l->buffer ? l->buffer : &shared;
}

/* ---- parts ----------------------------------------------------------------------------------- */

void lines_flush(struct lines *l)
{
    struct lines_buffer *b = buffer_of(l);
    size_t len = b->len;

    b->len = 0;
    if (len > 0)
        l->write(l->owner, b->bytes, len);
}

/* Where the next n bytes go. */
static char *room_for(struct lines *l, size_t n)
{
    struct lines_buffer *b = buffer_of(l);

    if (sizeof(b->bytes) - b->len < n)
        lines_flush(l);
    return b->bytes + b->len;
}

/* For a few bytes at a time: names, brackets, numbers. */
void lines_put(struct lines *l, const char *text, size_t len)
{
    memcpy(room_for(l, len), text, len);
    buffer_of(l)->len += len;
}

void lines_put_str(struct lines *l, const char *text)
{
    lines_put(l, text, strlen(text));
}

void lines_put_text(struct lines *l, struct escape *e, const void *text, size_t len)
{
    const char *p = text;

    for (size_t n; len > 0; p += n, len -= n) {
        n = len < LINE_TEXT_MAX ? len : LINE_TEXT_MAX;
        size_t put = escape_text(e, room_for(l, ESCAPE_ROOM(n)), p, n);
        buffer_of(l)->len += put;
    }
}

void lines_put_text_end(struct lines *l, struct escape *e)
{
    size_t put = escape_end(e, room_for(l, ESCAPE_END));

    buffer_of(l)->len += put;
}

/* ---- output ---------------------------------------------------------------------------------- */

static void put_time(struct lines *l)
{
    char text[CLOCK_TEXT_LEN];

    clock_text(clock_wall_ms(), text);
    lines_put_str(l, text);
}

/* Writes one line of output. If the text is empty, or only the start of a character, no line is
 * written. */
static void output_line(struct lines *l, enum lines_stream stream, const void *p, size_t len)
{
    static const char *const heads[] = {"{\"type\":\"stdout\",\"text\":\"",
                                        "{\"type\":\"stderr\",\"text\":\""};
    struct escape *e = &l->unfinished[stream];

    lines_put_str(l, heads[stream]);
    size_t before = buffer_of(l)->len;
    if (p)
        lines_put_text(l, e, p, len);
    else
        lines_put_text_end(l, e);
    if (buffer_of(l)->len == before) {
        buffer_of(l)->len = 0;
        return;
    }
    lines_put_str(l, "\",\"timestamp\":\"");
    put_time(l);
    lines_put_str(l, "\"}\n");
    lines_flush(l);
}

void lines_output(struct lines *l, enum lines_stream stream, const void *p, size_t len)
{
    const char *at = p;

    for (size_t n; len > 0; at += n, len -= n) {
        n = len < LINE_TEXT_MAX ? len : LINE_TEXT_MAX;
        output_line(l, stream, at, n);
    }
}

void lines_output_end(struct lines *l)
{
    output_line(l, LINES_STDOUT, NULL, 0);
    output_line(l, LINES_STDERR, NULL, 0);
}

/* ---- the other lines ------------------------------------------------------------------------- */

void lines_number(struct lines *l, uint32_t n)
{
    char text[80];

    snprintf(text, sizeof(text), "{\"type\":\"number_of_executions\",\"execution_count\":%u}\n", n);
    lines_put_str(l, text);
    lines_flush(l);
}

static void put_field(struct lines *l, const char *before, const struct strbuf *text)
{
    struct escape e = {0};

    lines_put_str(l, before);
    lines_put_text(l, &e, text->buf, text->len);
    lines_put_text_end(l, &e);
}

void lines_error(struct lines *l, const struct strbuf *name, const struct strbuf *value,
                 const struct strbuf *traceback)
{
    put_field(l, "{\"type\":\"error\",\"name\":\"", name);
    put_field(l, "\",\"value\":\"", value);
    put_field(l, "\",\"traceback\":\"", traceback);
    lines_put_str(l, "\"}\n");
    lines_flush(l);
}

void lines_keepalive(struct lines *l)
{
    lines_put_str(l, "{\"type\":\"keepalive\"}\n");
    lines_flush(l);
}

void lines_end(struct lines *l, unsigned code)
{
    char text[80] = "{\"type\":\"end_of_execution\"}\n";

    if (code != 0)
        snprintf(text, sizeof(text), "{\"type\":\"end_of_execution\",\"exit_code\":%u}\n", code);
    lines_put_str(l, text);
    lines_flush(l);
}
