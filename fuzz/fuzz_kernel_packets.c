/* What a kernel sends: a list of u16 length and packet. Length 0 is the beginning of the next cell.
 * It is asked to rest before each cell. Beyond memory errors this checks what the host relies on:
 * results are whole, and of one cell. */
#include <assert.h>

#include "inside/agent/kernel_packets.h"

struct host {
    bool in_result, in_cell;
    size_t result;
};

static void accept(struct host *h, int what, const uint8_t *p, size_t len)
{
    switch ((enum kernel_packet)what) {
    case PACKET_READY:
        assert(p[0] == 'Q' && len == 1 && !h->in_cell);
        break;
    case PACKET_BEGIN:
        assert(p[0] == 'R' && len == 2 && h->in_cell && !h->in_result);
        h->in_result = true;
        h->result = 0;
        break;
    case PACKET_RESULT:
        assert(h->in_cell && h->in_result && len <= KERNEL_PACKET_MAX);
        h->in_result = p[0] != 'r';
        h->result += len;
        assert(h->result <= KERNEL_RESULT_MAX);
        break;
    case PACKET_STRAY:
        assert(!h->in_result);
        break;
    case PACKET_DONE:
        assert(p[0] == 'F' && h->in_cell && !h->in_result);
        h->in_cell = false;
        break;
    case PACKET_RESTED:
        assert(p[0] == 'P' && len == 1);
        break;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    struct kernel_packets s = {0};
    struct host h = {0};
    uint32_t cells = 0;

    while (len >= 2) {
        size_t n = (size_t)data[0] | (size_t)data[1] << 8;

        data += 2;
        len -= 2;
        n = n < len ? n : len;
        if (n == 0 && s.ready && !s.running) {
            if (!s.resting)
                kernel_packets_rest(&s);
            kernel_packets_run(&s, ++cells);
            h.in_cell = true;
        }
        int what = kernel_packets_check(&s, data, n);
        assert(n > 0 || what < 0);
        if (what < 0 && n > 0)
            return 0; /* such a kernel is killed */
        if (what >= 0)
            accept(&h, what, data, n);
        data += n;
        len -= n;
    }
    return 0;
}
