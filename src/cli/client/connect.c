#include "cli/client/connect.h"

static size_t length_of(const char *header)
{
    const unsigned char *p = (const unsigned char *)header;

    return (size_t)p[1] << 24 | (size_t)p[2] << 16 | (size_t)p[3] << 8 | p[4];
}

static int check_header(const char *header, struct sg_error *e)
{
    if ((unsigned char)header[0] & ~CONNECT_END)
        return err_set(e, SG_ERR_INTERNAL, -EPROTO,
                       "the server's stream is in a form we did not ask for (flags 0x%02x)",
                       (unsigned char)header[0]);
    if (length_of(header) > CONNECT_MAX)
        return err_set(e, SG_ERR_INTERNAL, -EPROTO,
                       "a message of the server is longer than 16 MiB");
    return 0;
}

/* How many bytes the frame that begins in `pending` still lacks. Until its header is whole, only
 * the header's bytes count. */
static size_t missing(const struct strbuf *pending)
{
    size_t whole = CONNECT_HEADER;

    if (pending->len >= CONNECT_HEADER)
        whole += length_of(pending->buf);
    return whole - pending->len;
}

int connect_feed(struct strbuf *pending, const void *data, size_t len, connect_fn *fn, void *arg,
                 struct sg_error *e)
{
    const char *p = data;
    int result = 0;

    while (len > 0 && result == 0) {
        size_t piece = missing(pending);
        bool in_header = pending->len < CONNECT_HEADER;

        if (piece > len)
            piece = len;
        strbuf_add(pending, p, piece);
        p += piece;
        len -= piece;
        if (pending->truncated)
            return err_set(e, SG_ERR_INTERNAL, -ENOMEM, "out of memory");
        if (in_header && pending->len == CONNECT_HEADER)
            result = check_header(pending->buf, e);
        if (result < 0 || pending->len < CONNECT_HEADER || missing(pending) > 0)
            continue;
        result = fn(arg, pending->buf[0] & CONNECT_END, pending->buf + CONNECT_HEADER,
                    pending->len - CONNECT_HEADER, e);
        strbuf_reset(pending);
    }
    return result;
}

void connect_write(struct strbuf *out, const struct strbuf *message)
{
    char header[CONNECT_HEADER] = {0, (char)(message->len >> 24), (char)(message->len >> 16),
                                   (char)(message->len >> 8), (char)message->len};

    strbuf_add(out, header, sizeof(header));
    strbuf_add(out, message->buf, message->len);
}
