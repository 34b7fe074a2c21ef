/* The frames of a stream: the first byte is the size of the pieces they come in. However they are
 * cut, the same messages come out, and the same error. */
#include <assert.h>

#include "lib/rpc/envelope.h"

#define MESSAGE_MAX 4096

struct outcome {
    int error;
    size_t messages, bytes;
};

static struct outcome feed(const uint8_t *data, size_t len, size_t piece)
{
    struct rpc_envelopes r;
    struct outcome o = {0};
    struct sg_error e = {0};
    const char *p;
    size_t n;

    rpc_envelopes_init(&r, MESSAGE_MAX, piece);
    while (len > 0 && o.error == 0) {
        size_t now = len < piece ? len : piece;

        assert(rpc_envelopes_feed(&r, data, now, &e) == 0);
        while ((o.error = rpc_envelopes_next(&r, &p, &n, &e)) > 0) {
            assert(n <= MESSAGE_MAX && p >= r.buf.buf && p + n <= r.buf.buf + r.buf.len);
            o.messages++;
            o.bytes += n;
        }
        assert(r.buf.len - r.off <= MESSAGE_MAX + RPC_ENVELOPE_HEADER || o.error < 0);
        data += now;
        len -= now;
    }
    assert(o.error == 0 || e.message[0]);
    rpc_envelopes_done(&r);
    return o;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    if (len < 2)
        return 0;
    struct outcome whole = feed(data + 1, len - 1, len - 1);
    struct outcome pieces = feed(data + 1, len - 1, (size_t)data[0] + 1);
    assert(whole.error == pieces.error && whole.messages == pieces.messages &&
           whole.bytes == pieces.bytes);
    return 0;
}
