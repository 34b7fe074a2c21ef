/* The frames of a Connect stream: one byte of flags, four of length (big-endian), a message. They
 * come in pieces that are cut anywhere. A length is judged as soon as it has come, so the server
 * never waits for a message that is too long. */
#pragma once

#include "lib/base/err.h"
#include "lib/text/strbuf.h"

#define RPC_ENVELOPE_HEADER     5
#define RPC_ENVELOPE_COMPRESSED 1u
#define RPC_ENVELOPE_END        2u /* end of the stream, with a result; only servers send it */

struct rpc_envelopes {
    struct strbuf buf;
    size_t off; /* where the next frame begins */
    size_t max; /* longest message allowed */
};

/* `piece`: the most bytes that one call feeds. */
void rpc_envelopes_init(struct rpc_envelopes *r, size_t max, size_t piece);
void rpc_envelopes_done(struct rpc_envelopes *r);
/* Feeds bytes. Before the next feed, take all whole frames. */
int rpc_envelopes_feed(struct rpc_envelopes *r, const void *data, size_t len, struct sg_error *e);
/* The next whole message of a client: 1, or 0 if there is none yet, or -errno: -EMSGSIZE too long,
 * -ENOTSUP compressed, -EPROTO other flags. Valid until the next feed. */
int rpc_envelopes_next(struct rpc_envelopes *r, const char **ret, size_t *ret_len,
                       struct sg_error *e);
/* Whether a frame has begun that is not whole. */
bool rpc_envelopes_partial(const struct rpc_envelopes *r);

void rpc_envelope_header(char ret[RPC_ENVELOPE_HEADER], unsigned flags, size_t len);
