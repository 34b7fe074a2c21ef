#include "front/acp/backlog.h"

#include <string.h>

#include "lib/http/ws_codec.h"

#define SEGMENT_MAX (64u * 1024)
#define SEGMENT_MIN (4u * 1024)
#define PARTS       8 /* a segment is at most this part of the limit, and so is one drop */

struct backlog_segment {
    struct backlog_segment *next;
    uint64_t begin, first_number; /* place of its first byte; number of its first message */
    size_t len, cap;
    char data[];
};

void backlog_init(struct backlog *b, size_t limit)
{
    *b = (struct backlog){.limit = limit, .first_number = 1, .next = 1};
}

static void drop_first(struct backlog *b)
{
    struct backlog_segment *s = b->first;

    b->first = s->next;
    if (!b->first)
        b->last = NULL;
    b->begin = s->begin + s->len;
    b->first_number = b->first ? b->first->first_number : b->next;
    free(s);
}

void backlog_drop(struct backlog *b)
{
    while (b->first)
        drop_first(b);
    b->confirmed = b->end;
}

/* Drops segments that are confirmed as a whole, while there is too much. */
static void shrink(struct backlog *b)
{
    while (b->first && backlog_kept(b) > b->limit &&
           b->first->begin + b->first->len <= b->confirmed)
        drop_first(b);
}

static struct backlog_segment *room_for(struct backlog *b, size_t len)
{
    struct backlog_segment *s = b->last;
    size_t cap = b->limit / PARTS;

    if (s && s->cap - s->len >= len)
        return s;
    cap = cap > SEGMENT_MAX ? SEGMENT_MAX : cap < SEGMENT_MIN ? SEGMENT_MIN : cap;
    cap = len > cap ? len : cap;
    s = malloc(sizeof(*s) + cap);
    if (!s)
        return NULL;
    *s = (struct backlog_segment){.begin = b->end, .first_number = b->next, .cap = cap};
    if (b->last)
        b->last->next = s;
    else
        b->first = s;
    b->last = s;
    return s;
}

int backlog_add(struct backlog *b, const void *message, size_t len)
{
    uint8_t head[WS_HEAD_OWN];
    size_t n = ws_frame_head(head, WS_OP_TEXT, len);
    struct backlog_segment *s = room_for(b, n + len);

    if (!s)
        return -ENOMEM;
    memcpy(s->data + s->len, head, n);
    memcpy(s->data + s->len + n, message, len);
    s->len += n + len;
    b->end += n + len;
    b->next++;
    shrink(b);
    return 0;
}

bool backlog_full(const struct backlog *b, uint64_t from, size_t more)
{
    uint64_t waiting = b->end - from;

    return waiting > 0 && waiting + more >= b->limit;
}

void backlog_confirm(struct backlog *b, uint64_t boundary)
{
    if (boundary > b->confirmed && boundary <= b->end)
        b->confirmed = boundary;
    shrink(b);
}

/* Confirms whole segments only: a segment starts where a message does. */
void backlog_assume(struct backlog *b, uint64_t sent, size_t most)
{
    for (const struct backlog_segment *s = b->first; s && s->begin + most <= sent; s = s->next)
        if (s->begin > b->confirmed)
            b->confirmed = s->begin;
    shrink(b);
}

void backlog_confirm_only(struct backlog *b, const struct backlog_cursor *c)
{
    b->confirmed = c->boundary;
    shrink(b);
}

/* ---- cursors --------------------------------------------------------------------------------- */

/* Puts a cursor at the message that begins at `to` bytes, or has that number. The message exists,
 * or will be the next. */
static void seek(const struct backlog *b, bool by_number, uint64_t to, struct backlog_cursor *ret)
{
    struct backlog_segment *s = b->first;

    while (s && s->next && (by_number ? s->next->first_number : s->next->begin) <= to)
        s = s->next;
    *ret = (struct backlog_cursor){
        .segment = s, .at = s ? s->begin : b->end, .next = s ? s->first_number : b->next};
    while (s && ret->at < s->begin + s->len && (by_number ? ret->next : ret->at) < to) {
        ret->at += ws_frame_size(s->data + (ret->at - s->begin));
        ret->next++;
    }
    ret->boundary = ret->at;
}

int backlog_seek(const struct backlog *b, uint64_t number, struct backlog_cursor *ret)
{
    if (number < b->first_number)
        return -ESTALE;
    if (number > b->next)
        return -ERANGE;
    seek(b, true, number, ret);
    return 0;
}

void backlog_seek_waiting(const struct backlog *b, struct backlog_cursor *ret)
{
    seek(b, false, b->confirmed, ret);
}

/* Moves over whole messages of no more than max bytes together. */
static size_t pass_whole(struct backlog_cursor *c, const char *p, size_t there, size_t max)
{
    size_t n = 0;

    while (n < there) {
        size_t size = ws_frame_size(p + n);
        if (n + size > max)
            break;
        n += size;
        c->next++;
    }
    c->boundary += n;
    return n;
}

/* Moves over a piece of the message that the cursor is within. */
static size_t pass_piece(struct backlog_cursor *c, size_t max)
{
    size_t n = c->frame_left < max ? c->frame_left : max;

    c->frame_left -= n;
    if (c->frame_left == 0) {
        c->boundary = c->at + n;
        c->next++;
    }
    return n;
}

ssize_t backlog_take(const struct backlog *b, struct backlog_cursor *c, size_t max,
                     const char **ret)
{
    if (c->at < b->begin)
        return -ESTALE;
    /* The cursor's segment may have been dropped, or did not exist yet. */
    if (c->at == b->begin)
        c->segment = b->first;
    struct backlog_segment *s = c->segment;
    if (s && c->at == s->begin + s->len && s->next)
        s = c->segment = s->next;
    size_t there = s ? (size_t)(s->begin + s->len - c->at) : 0, n = 0;
    if (there == 0)
        return 0;
    *ret = s->data + (c->at - s->begin);
    if (c->frame_left == 0)
        n = pass_whole(c, *ret, there, max);
    if (n == 0) {
        if (c->frame_left == 0)
            c->frame_left = ws_frame_size(*ret);
        n = pass_piece(c, max);
    }
    c->at += n;
    return (ssize_t)n;
}
