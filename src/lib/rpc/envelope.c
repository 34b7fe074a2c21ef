#include "lib/rpc/envelope.h"

void rpc_envelopes_init(struct rpc_envelopes *r, size_t max, size_t piece)
{
    *r = (struct rpc_envelopes){.max = max};
    strbuf_init(&r->buf, max + RPC_ENVELOPE_HEADER + piece);
}

void rpc_envelopes_done(struct rpc_envelopes *r)
{
    strbuf_done(&r->buf);
}

int rpc_envelopes_feed(struct rpc_envelopes *r, const void *data, size_t len, struct sg_error *e)
{
    /* once for each piece, not for each frame */
    strbuf_consume(&r->buf, r->off);
    r->off = 0;
    strbuf_add(&r->buf, data, len);
    if (r->buf.truncated)
        return err_set(e, SG_ERR_LIMIT, -ENOMEM, "no memory for the request");
    return 0;
}

static size_t length_of(const unsigned char *header)
{
    return (size_t)header[1] << 24 | (size_t)header[2] << 16 | (size_t)header[3] << 8 | header[4];
}

int rpc_envelopes_next(struct rpc_envelopes *r, const char **ret, size_t *ret_len,
                       struct sg_error *e)
{
    const unsigned char *header = (const unsigned char *)r->buf.buf + r->off;
    size_t left = r->buf.len - r->off;

    if (left > 0 && header[0] == RPC_ENVELOPE_COMPRESSED)
        return err_set(e, SG_ERR_UNSUPPORTED, -ENOTSUP,
                       "compressed messages are not supported: send them as they are");
    if (left > 0 && header[0] != 0)
        return err_set(e, SG_ERR_INVALID, -EPROTO,
                       "a frame of the request has the unknown flags 0x%02x", header[0]);
    if (left < RPC_ENVELOPE_HEADER)
        return 0;
    size_t len = length_of(header);
    if (len > r->max)
        return err_set(e, SG_ERR_LIMIT, -EMSGSIZE, "a message of %zu bytes is larger than %zu", len,
                       r->max);
    if (left - RPC_ENVELOPE_HEADER < len)
        return 0;
    *ret = r->buf.buf + r->off + RPC_ENVELOPE_HEADER;
    *ret_len = len;
    r->off += RPC_ENVELOPE_HEADER + len;
    return 1;
}

bool rpc_envelopes_partial(const struct rpc_envelopes *r)
{
    return r->buf.len > r->off;
}

void rpc_envelope_header(char ret[RPC_ENVELOPE_HEADER], unsigned flags, size_t len)
{
    ret[0] = (char)flags;
    ret[1] = (char)(len >> 24);
    ret[2] = (char)(len >> 16);
    ret[3] = (char)(len >> 8);
    ret[4] = (char)len;
}
