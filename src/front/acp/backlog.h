/* The messages of an agent, in order and numbered from 1, for those who read them now and for those
 * who come back.
 *
 *      dropped        confirmed           not confirmed
 *   |- - - - - - -|===============|========================|  <-- the agent writes
 *                 first           ^                        end
 *                                 what the writer's client is known to have
 *
 * They are kept as what goes over a connection: WebSocket frames, one behind the other, in segments
 * of memory. So to send a thousand messages is one write, and a place among them is a number of
 * bytes since the first message: a cursor. Messages never lie across two segments.
 *
 * What is confirmed is dropped when there is more than the limit, whole segments at a time; what is
 * not stays. When that alone is more than the limit, the backlog is full, and who feeds it must
 * stop; a message that is longer than the limit finds room when nothing else is unconfirmed. */
#pragma once

#include "lib/base/err.h"

struct backlog_segment;

struct backlog {
    size_t limit;
    struct backlog_segment *first, *last;
    uint64_t begin, end;         /* bytes: where `first` begins, where the next message goes */
    uint64_t confirmed;          /* bytes */
    uint64_t first_number, next; /* of messages: the oldest that is here, the next that comes */
};

/* A place in it, at the begin of a message or within one. */
struct backlog_cursor {
    struct backlog_segment *segment;
    uint64_t at;       /* bytes */
    uint64_t boundary; /* the last begin of a message that it passed */
    size_t frame_left; /* of the message that it is within; 0: at a begin */
    uint64_t next;     /* number of the message that comes next, or is under way */
};

void backlog_init(struct backlog *b, size_t limit);
/* Drops everything; the numbers go on. */
void backlog_drop(struct backlog *b);
/* -ENOMEM. */
int backlog_add(struct backlog *b, const void *message, size_t len);
/* Bytes that are not confirmed. */
static inline size_t backlog_waiting(const struct backlog *b)
{
    return (size_t)(b->end - b->confirmed);
}
static inline size_t backlog_kept(const struct backlog *b)
{
    return (size_t)(b->end - b->begin);
}
/* Whether a feeder that has `more` bytes of a message already must stop, as there is too much from
 * there on: what is confirmed, or what was sent. */
bool backlog_full(const struct backlog *b, uint64_t from, size_t more);
/* The client has everything before this boundary. */
void backlog_confirm(struct backlog *b, uint64_t boundary);
/* It cannot tell now: of what was sent before this place no more than `most` bytes are in question,
 * the rest has arrived. */
void backlog_assume(struct backlog *b, uint64_t sent, size_t most);
/* The client says what it has: all before the cursor, and nothing else. */
void backlog_confirm_only(struct backlog *b, const struct backlog_cursor *c);

/* At the message with that number. -ESTALE: it was dropped. -ERANGE: there is none yet, nor will be
 * the next. */
int backlog_seek(const struct backlog *b, uint64_t number, struct backlog_cursor *ret);
/* At the first that is not confirmed. */
void backlog_seek_waiting(const struct backlog *b, struct backlog_cursor *ret);
/* Bytes from the cursor on, which then is behind them: whole messages, or, of one that is longer
 * than max, a piece. 0: there are none. -ESTALE: they were dropped. */
ssize_t backlog_take(const struct backlog *b, struct backlog_cursor *c, size_t max,
                     const char **ret);
