/* The messages of an agent, in order and numbered from 1, for clients that read now and for clients
 * that come back.
 *
 *      dropped        confirmed           not confirmed
 *   |- - - - - - -|===============|========================|  <-- the agent writes
 *                 first           ^                        end
 *                                 the writer's client is known to have everything up to here
 *
 * Messages are kept in the form in which a connection sends them: WebSocket frames, one behind the
 * other, in segments of memory. So to send a thousand messages is one write, and a place among them
 * is a number of bytes since the first message: a cursor. No message lies across two segments.
 *
 * When there is more than the limit, confirmed messages are dropped, whole segments at a time;
 * unconfirmed ones stay. When those alone exceed the limit, the backlog is full, and the feeder
 * must stop. A message that is longer than the limit finds room when nothing else is
 * unconfirmed. */
#pragma once

#include "lib/base/err.h"

struct backlog_segment;

struct backlog {
    size_t limit;
    struct backlog_segment *first, *last;
    uint64_t begin, end;         /* bytes: where `first` begins, where the next message goes */
    uint64_t confirmed;          /* bytes */
    uint64_t first_number, next; /* number of the oldest message here, and of the next to come */
};

/* A place in the backlog, at the start of a message or within one. */
struct backlog_cursor {
    struct backlog_segment *segment;
    uint64_t at;       /* bytes */
    uint64_t boundary; /* the last start of a message at or before `at` */
    size_t frame_left; /* bytes left of the message that it is within; 0: at a start */
    uint64_t next;     /* number of the message that comes next, or is under way */
};

void backlog_init(struct backlog *b, size_t limit);
/* Drops all messages; the numbers go on. */
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
/* Whether a feeder that has `more` bytes of the next message already must stop, as there is too
 * much after `from`: the confirmed place, or the place up to which messages were sent. */
bool backlog_full(const struct backlog *b, uint64_t from, size_t more);
/* The client has everything before this boundary. */
void backlog_confirm(struct backlog *b, uint64_t boundary);
/* The client cannot confirm now. Assumes that of everything sent before this place no more than
 * `most` bytes are still on the way, and that the rest has arrived. */
void backlog_assume(struct backlog *b, uint64_t sent, size_t most);
/* The client says that it has all messages before the cursor, and no others. */
void backlog_confirm_only(struct backlog *b, const struct backlog_cursor *c);

/* Puts a cursor at the message with that number. -ESTALE: it was dropped. -ERANGE: it does not
 * exist yet, and is not the next either. */
int backlog_seek(const struct backlog *b, uint64_t number, struct backlog_cursor *ret);
/* Puts a cursor at the first message that is not confirmed. */
void backlog_seek_waiting(const struct backlog *b, struct backlog_cursor *ret);
/* Takes bytes at the cursor, and moves it behind them: whole messages, or a piece of one that is
 * longer than max. 0: there are none. -ESTALE: they were dropped. */
ssize_t backlog_take(const struct backlog *b, struct backlog_cursor *c, size_t max,
                     const char **ret);
