/* What the front and the database worker say to each other: messages, in packets of a bounded size.
 *
 *   message: kind, seq, bytes       packet: header {magic, kind, seq, total, offset}, a piece
 *
 * The pieces of a message come one after another, never mixed with another's. Each side checks
 * every packet; one that does not fit means that the other side is not what it was, and ends the
 * talk. Numbers are the machine's own: both are one program.
 *
 * Inside a message are u32 and texts (their length, their bytes, NUL), so that what is read may be
 * used where it lies. */
#pragma once

#include "lib/base/err.h"
#include "lib/text/strbuf.h"

#define WIRE_PACKET_MAX  (32u * 1024)
#define WIRE_MESSAGE_MAX (2u * 1024 * 1024)

enum wire_kind {
    WIRE_CONNECT, /* to the database worker: where the database is */
    WIRE_CALL,    /* statement, tenant, parameters */
    WIRE_ANSWER,  /* r, kind and text of the error, columns, cells */
    WIRE_NOTE,    /* from the database worker: a line for the log */
    WIRE_MAX_
};

struct wire_header {
    uint32_t magic;
    uint32_t kind;
    uint64_t seq;
    uint32_t total, offset; /* bytes of the message, and of it before this packet */
};

/* What has come of the message that is being received. */
struct wire_in {
    struct wire_header head; /* of the first packet */
    char *buf;               /* total bytes and a NUL, or NULL between messages */
    size_t len;
};
void wire_in_done(struct wire_in *in);
/* Takes one packet. 1: a message is whole (in->head, in->buf), to be released by wire_in_done
 * before the next. 0: not yet. -EAGAIN: nothing there. -EPIPE: the other side is gone, -EPROTO: or
 * talks nonsense. */
int wire_receive(int sock, struct wire_in *in, int flags);

/* Sends the packet that begins at *offset, and moves that. 1: it was the last. 0: there are more.
 * Or -errno. */
int wire_send_next(int sock, enum wire_kind kind, uint64_t seq, const struct strbuf *message,
                   size_t *offset, int flags);

void wire_add_u32(struct strbuf *out, uint32_t value);
/* text may be NULL, and then is read as NULL. */
void wire_add_text(struct strbuf *out, const char *text);

struct wire_reader {
    const char *at, *end;
    bool bad; /* it ended too early, or is no text: everything read since is 0 or NULL */
};
uint32_t wire_read_u32(struct wire_reader *r);
const char *wire_read_text(struct wire_reader *r);
