#include "front/store/dbworker_wire.h"

#include <string.h>

#include "lib/ipc/ipc.h"

#define MAGIC     0x73676331u /* "sgc1" */
#define TEXT_NULL UINT32_MAX

void wire_in_done(struct wire_in *in)
{
    if (in->buf)
        explicit_bzero(in->buf, in->len);
    free(in->buf);
    *in = (struct wire_in){0};
}

static bool fits(const struct wire_in *in, const struct wire_header *h, size_t piece)
{
    if (h->kind >= WIRE_MAX_ || h->total > WIRE_MESSAGE_MAX || h->offset != in->len ||
        piece > h->total - h->offset)
        return false;
    /* Only an empty message may have an empty packet: every other packet must bring the message
     * forward. */
    if (piece == 0 && h->total > 0)
        return false;
    return !in->buf ||
           (h->kind == in->head.kind && h->seq == in->head.seq && h->total == in->head.total);
}

int wire_receive(int sock, struct wire_in *in)
{
    static _Thread_local char packet[WIRE_PACKET_MAX];
    struct wire_header h;
    ssize_t got = ipc_take(sock, MAGIC, packet, sizeof(h), sizeof(packet), NULL);

    if (got < 0)
        return (int)got;
    memcpy(&h, packet, sizeof(h));
    size_t piece = (size_t)got - sizeof(h);
    if (!fits(in, &h, piece))
        return -EPROTO;
    if (!in->buf) {
        in->buf = malloc((size_t)h.total + 1);
        if (!in->buf)
            return -ENOMEM;
        in->head = h;
    }
    memcpy(in->buf + in->len, packet + sizeof(h), piece);
    in->len += piece;
    in->buf[in->len] = '\0';
    return in->len == h.total;
}

int wire_send_next(int sock, enum wire_kind kind, uint64_t seq, const struct strbuf *message,
                   size_t *offset)
{
    struct wire_header h = {.magic = MAGIC,
                            .kind = kind,
                            .seq = seq,
                            .total = (uint32_t)message->len,
                            .offset = (uint32_t)*offset};
    size_t piece = message->len - *offset;
    if (piece > WIRE_PACKET_MAX - sizeof(h))
        piece = WIRE_PACKET_MAX - sizeof(h);
    struct iovec parts[] = {{&h, sizeof(h)}, {message->buf + *offset, piece}};
    int r = ipc_send_parts(sock, parts, NULL, 0);

    if (r < 0)
        return r;
    *offset += piece;
    return *offset == message->len;
}

void wire_add_u32(struct strbuf *out, uint32_t value)
{
    strbuf_add(out, &value, sizeof(value));
}

void wire_add_text(struct strbuf *out, const char *text)
{
    size_t len = text ? strlen(text) : 0;

    if (!text || len >= TEXT_NULL) {
        wire_add_u32(out, TEXT_NULL);
        return;
    }
    wire_add_u32(out, (uint32_t)len);
    strbuf_add(out, text, len + 1);
}

uint32_t wire_read_u32(struct wire_reader *r)
{
    uint32_t value;

    if (r->bad || (size_t)(r->end - r->at) < sizeof(value)) {
        r->bad = true;
        return 0;
    }
    memcpy(&value, r->at, sizeof(value));
    r->at += sizeof(value);
    return value;
}

const char *wire_read_text(struct wire_reader *r)
{
    uint32_t len = wire_read_u32(r);
    const char *text = r->at;

    if (r->bad || len == TEXT_NULL)
        return NULL;
    if ((size_t)(r->end - r->at) <= len || strnlen(text, (size_t)len + 1) != len) {
        r->bad = true;
        return NULL;
    }
    r->at += (size_t)len + 1;
    return text;
}
