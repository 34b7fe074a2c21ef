/* What a proxy says to a client of SOCKS5, in one piece and byte by byte. The first byte: with a
 * password or without, to a name or to an address. */
#include <assert.h>
#include <string.h>

#include "guard/socks5.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct talk {
    struct socks5 s;
    struct strbuf out;
    struct sg_error e;
    size_t used; /* of all that was fed */
    int r;
};

static void talk_init(struct talk *t, const struct policy_proxy *proxy, bool named)
{
    struct net_addr a = {.ip = {0x26, 6, [15] = 1}, .port = 443};

    *t = (struct talk){0};
    strbuf_init(&t->out, 1024);
    socks5_begin(&t->s, proxy, named ? "a.test" : "", &a, &t->out);
}

static void talk_feed(struct talk *t, const uint8_t *p, size_t len)
{
    size_t used = 0;

    t->r = socks5_feed(&t->s, p, len, &used, &t->out, &t->e);
    assert(used <= len && (t->r != 0 || used == len));
    assert(t->r >= 0 || (t->e.message[0] && !strstr(t->e.message, "secret")));
    t->used += used;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static uint8_t password[] = "secret";
    struct policy_proxy proxy = {.host = "proxy.test", .port = 1080};
    struct talk whole, bytes;

    if (size < 1)
        return 0;
    if (data[0] & 1) {
        memcpy(proxy.username, "me", 3);
        proxy.password = (struct secret){password, 6};
    }
    talk_init(&whole, &proxy, data[0] & 2);
    talk_init(&bytes, &proxy, data[0] & 2);
    talk_feed(&whole, data + 1, size - 1);
    for (size_t i = 1; i < size && bytes.r == 0; i++)
        talk_feed(&bytes, data + i, 1);
    assert(whole.r == bytes.r && (whole.r < 0 || whole.used == bytes.used));
    assert(!whole.out.truncated && whole.out.len == bytes.out.len &&
           memcmp(whole.out.buf, bytes.out.buf, whole.out.len) == 0);
    strbuf_done(&whole.out);
    strbuf_done(&bytes.out);
    return 0;
}
