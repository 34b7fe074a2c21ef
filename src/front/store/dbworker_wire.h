/* Messages between the front and the database worker, sent in packets of bounded size.
 *
 *   message: kind, seq, bytes
 *   packet:  header {magic, kind, seq, total, offset}, then a piece of the message
 *
 * The pieces of a message come one after another, never mixed with those of another message. Each
 * side checks every packet; a packet that does not fit shows that the other side cannot be trusted
 * any more, and ends the connection. Numbers are in the machine's byte order: both sides are one
 * program.
 *
 * A message consists of u32 numbers and texts (length, bytes, NUL), so that a reader can use the
 * texts where they lie. */
#pragma once

#include "lib/base/err.h"
#include "lib/text/strbuf.h"

#define WIRE_PACKET_MAX  (32u * 1024)
#define WIRE_MESSAGE_MAX (2u * 1024 * 1024)

enum wire_kind {
    WIRE_CONNECT, /* to the database worker: where the database is */
    WIRE_CALL,    /* statement, tenant, parameters */
    WIRE_ANSWER,  /* why it failed, or NULL; rows, columns, cells */
    WIRE_NOTE,    /* from the database worker: a line for the log */
    WIRE_MAX_
};

struct wire_header {
    uint32_t magic;
    uint32_t kind;
    uint64_t seq;
    uint32_t total, offset; /* bytes of the message, and how many came before this packet */
};

/* The message that is being received, as far as it has come. */
struct wire_in {
    struct wire_header head; /* of the first packet */
    char *buf;               /* total bytes and a NUL, or NULL between messages */
    size_t len;
};
void wire_in_done(struct wire_in *in);
/* Takes one packet. 1: a message is whole (in->head, in->buf); release it with wire_in_done before
 * the next. 0: not yet. -EAGAIN: nothing has come. -EPIPE: the other side is gone. -EPROTO: the
 * other side sent nonsense. */
int wire_receive(int sock, struct wire_in *in);

/* Sends the packet that begins at *offset, and moves *offset on. 1: that was the last packet. 0:
 * there are more. Or -errno. */
int wire_send_next(int sock, enum wire_kind kind, uint64_t seq, const struct strbuf *message,
                   size_t *offset);

void wire_add_u32(struct strbuf *out, uint32_t value);
/* Adds a text, which may be NULL and is then read as NULL. */
void wire_add_text(struct strbuf *out, const char *text);

struct wire_reader {
    const char *at, *end;
    bool bad; /* the message ended early, or a text is none: reads give 0 or NULL from then on */
};
uint32_t wire_read_u32(struct wire_reader *r);
const char *wire_read_text(struct wire_reader *r);
