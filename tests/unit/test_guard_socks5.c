/* SOCKS5 toward a sandbox's own proxy: what is said, and what answers do. */
#include "guard/socks5.h"
#include "tap.h"

#define BYTES(text) (const uint8_t *)(text), sizeof(text) - 1

static const uint8_t password[] = "secret";
static struct policy_proxy open_proxy = {.host = "proxy.test", .port = 1080};
static struct policy_proxy closed_proxy = {.host = "proxy.test", .port = 1080, .username = "me"};

struct talk {
    struct socks5 s;
    struct strbuf out;
    struct sg_error e;
    size_t used;
};

static void begin(struct talk *t, const struct policy_proxy *proxy, const char *name)
{
    struct net_addr a = {.ip = {[10] = 255, 255, 93, 184, 216, 34}, .port = 443};

    closed_proxy.password = (struct secret){(uint8_t *)(uintptr_t)password, 6};
    strbuf_init(&t->out, 1024);
    t->e = (struct sg_error){0};
    t->used = 0;
    socks5_begin(&t->s, proxy, name, &a, &t->out);
}

static int feed(struct talk *t, const uint8_t *p, size_t len)
{
    strbuf_reset(&t->out);
    return socks5_feed(&t->s, p, len, &t->used, &t->out, &t->e);
}

static bool said(const struct talk *t, const uint8_t *p, size_t len)
{
    return t->out.len == len && memcmp(t->out.buf, p, len) == 0;
}

/* A talk that has got as far as the reply. */
static void begin_reply(struct talk *t)
{
    begin(t, &open_proxy, "a.test");
    feed(t, BYTES("\5\0"));
}

TEST(a_name_is_sent_as_a_name)
{
    struct talk t;

    begin(&t, &open_proxy, "a.test");
    EXPECT(said(&t, BYTES("\5\1\0")));
    EXPECT(feed(&t, BYTES("\5\0")) == 0 && t.used == 2);
    EXPECT(said(&t, BYTES("\5\1\0\3\6a.test\1\xbb")));
    EXPECT(feed(&t, BYTES("\5\0\0\1\1\2\3\4\5\6hello")) == 1 && t.used == 10);
    EXPECT(t.out.len == 0);
    strbuf_done(&t.out);
}

TEST(an_address_is_sent_as_an_address)
{
    struct net_addr six = {.ip = {0x26, 6, [15] = 1}, .port = 80};
    struct talk t;

    begin(&t, &open_proxy, "");
    feed(&t, BYTES("\5\0"));
    EXPECT(said(&t, BYTES("\5\1\0\1\x5d\xb8\xd8\x22\1\xbb")));
    strbuf_reset(&t.out);
    socks5_begin(&t.s, &open_proxy, "", &six, &t.out);
    feed(&t, BYTES("\5\0"));
    EXPECT(said(&t, BYTES("\5\1\0\4\x26\6\0\0\0\0\0\0\0\0\0\0\0\0\0\1\0\x50")));
    strbuf_done(&t.out);
}

TEST(the_password_is_sent_when_it_is_asked_for)
{
    struct talk t;

    begin(&t, &closed_proxy, "a.test");
    EXPECT(said(&t, BYTES("\5\2\0\2")));
    EXPECT(feed(&t, BYTES("\5\2")) == 0);
    EXPECT(said(&t, BYTES("\1\2me\6secret")));
    EXPECT(feed(&t, BYTES("\1\0")) == 0);
    EXPECT(said(&t, BYTES("\5\1\0\3\6a.test\1\xbb")));
    strbuf_done(&t.out);
    begin(&t, &closed_proxy, "a.test");
    EXPECT(feed(&t, BYTES("\5\0")) == 0);
    EXPECT(said(&t, BYTES("\5\1\0\3\6a.test\1\xbb")));
    strbuf_done(&t.out);
}

TEST(a_refused_password_is_an_error_without_it)
{
    struct talk t;

    begin(&t, &closed_proxy, "a.test");
    feed(&t, BYTES("\5\2"));
    EXPECT(feed(&t, BYTES("\1\1")) == -EACCES);
    EXPECT(t.out.len == 0 && t.e.message[0] && !strstr(t.e.message, "secret"));
    strbuf_done(&t.out);
    begin(&t, &closed_proxy, "a.test");
    EXPECT(feed(&t, BYTES("\5\xff")) == -EACCES && t.e.message[0]);
    strbuf_done(&t.out);
    begin(&t, &open_proxy, "a.test");
    EXPECT(feed(&t, BYTES("\5\xff")) == -EACCES && strstr(t.e.message, "password"));
    strbuf_done(&t.out);
}

TEST(refusals_say_why)
{
    static const int errors[] = {EIO,       EACCES,     ENETUNREACH,  EHOSTUNREACH, ECONNREFUSED,
                                 ETIMEDOUT, EOPNOTSUPP, EAFNOSUPPORT, EIO};
    struct talk t;

    for (size_t i = 0; i < ARRAY_SIZE(errors); i++) {
        uint8_t reply[] = {5, (uint8_t)(i + 1)};
        begin_reply(&t);
        EXPECT(feed(&t, reply, sizeof(reply)) == -errors[i]);
        EXPECT(strstr(t.e.message, "did not connect"));
        strbuf_done(&t.out);
    }
}

TEST(replies_have_three_lengths)
{
    struct talk t;
    uint8_t longest[4 + 1 + 255 + 2 + 1] = {5, 0, 0, 3, 255};

    begin_reply(&t);
    EXPECT(feed(&t, BYTES("\5\0\0\4xxxxxxxxxxxxxxxx\0\1more")) == 1 && t.used == 22);
    strbuf_done(&t.out);
    begin_reply(&t);
    EXPECT(feed(&t, longest, sizeof(longest)) == 1 && t.used == sizeof(longest) - 1);
    strbuf_done(&t.out);
    begin_reply(&t);
    EXPECT(feed(&t, BYTES("\5\0\0\3\0\0\1")) == 1 && t.used == 7);
    strbuf_done(&t.out);
}

TEST(it_may_come_byte_by_byte)
{
    static const uint8_t all[] = "\5\2\1\0\5\0\0\3\3abc\0\1";
    struct talk t;

    begin(&t, &closed_proxy, "a.test");
    for (size_t i = 0; i + 1 < sizeof(all); i++)
        EXPECT(feed(&t, all + i, 1) == (i + 2 == sizeof(all)) && t.used == 1);
    strbuf_done(&t.out);
    begin(&t, &closed_proxy, "a.test");
    EXPECT(feed(&t, all, sizeof(all) - 1) == 1 && t.used == sizeof(all) - 1);
    strbuf_done(&t.out);
}

TEST(other_protocols_are_errors)
{
    struct talk t;

    begin(&t, &open_proxy, "a.test");
    EXPECT(feed(&t, BYTES("HTTP/1.1 400")) == -EPROTO);
    strbuf_done(&t.out);
    begin(&t, &open_proxy, "a.test");
    EXPECT(feed(&t, BYTES("\5\2")) == -EPROTO); /* was not offered */
    EXPECT(t.out.len == 0);
    strbuf_done(&t.out);
    begin(&t, &closed_proxy, "a.test");
    EXPECT(feed(&t, BYTES("\5\1")) == -EPROTO);
    strbuf_done(&t.out);
    begin(&t, &closed_proxy, "a.test");
    EXPECT(feed(&t, BYTES("\5\2\5\0")) == -EPROTO);
    strbuf_done(&t.out);
    begin_reply(&t);
    EXPECT(feed(&t, BYTES("\5\0\0\2\0")) == -EPROTO);
    strbuf_done(&t.out);
    begin_reply(&t);
    EXPECT(feed(&t, BYTES("\5\0\1\1\0")) == -EPROTO);
    strbuf_done(&t.out);
}

TAP_MAIN
