/* DNS messages: what is read, what is refused, what is written. */
#include <arpa/inet.h>

#include "guard/dns_message.h"
#include "guard/dns_names.h"
#include "tap.h"

TAP_MAIN

struct bytes {
    uint8_t p[70000];
    size_t len;
};

static struct bytes b;

static void put(const void *p, size_t len)
{
    if (len > 0)
        memcpy(b.p + b.len, p, len);
    b.len += len;
}

static void put16(unsigned v)
{
    put((uint8_t[]){(uint8_t)(v >> 8), (uint8_t)v}, 2);
}

static void put_name(const char *name)
{
    AUTO(strbuf_done) struct strbuf s = {0};

    strbuf_init(&s, 300);
    dns_name_write(name, &s);
    put(s.buf, s.len);
}

static void head(unsigned id, unsigned flags, unsigned qd, unsigned an, unsigned ns, unsigned ar)
{
    b.len = 0;
    put16(id);
    put16(flags);
    put16(qd);
    put16(an);
    put16(ns);
    put16(ar);
}

static void question(const char *name, unsigned type)
{
    head(7, 0x0100, 1, 0, 0, 0);
    put_name(name);
    put16(type);
    put16(1);
}

static void opt(unsigned size, unsigned version, const void *options, size_t len)
{
    put("", 1);
    put16(DNS_OPT);
    put16(size);
    put16(version);
    put16(0);
    put16((unsigned)len);
    put(options, len);
}

static void record(const char *owner, unsigned type, unsigned ttl, const void *data, size_t len)
{
    if (owner)
        put_name(owner);
    else
        put16(0xc00c);
    put16(type);
    put16(1);
    put16(ttl >> 16);
    put16(ttl & 0xffff);
    put16((unsigned)len);
    put(data, len);
}

static int read_question(struct dns_question *q)
{
    /* Of its very size, so that reading behind it is noticed. */
    AUTO(free_p) uint8_t *copy = malloc(b.len + 1);

    memcpy(copy, b.p, b.len);
    return dns_question_read(copy, b.len, q);
}

/* ---- questions ------------------------------------------------------------------------------- */

TEST(a_question_is_read)
{
    struct dns_question q;

    question("WwW.Example.test", DNS_AAAA);
    EXPECT(read_question(&q) == 0);
    EXPECT_STR(q.name, "www.example.test");
    EXPECT(q.id == 7 && q.type == DNS_AAAA && !q.edns && q.udp_max == 512);
    EXPECT(q.wire_len == b.len - 12 && memcmp(q.wire, b.p + 12, q.wire_len) == 0);
}

TEST(edns_is_read_and_its_options_are_passed_over)
{
    /* ECS 1.2.3.0/24 and a cookie. */
    static const uint8_t options[] = {0,  8, 0, 7, 0, 1, 24, 0, 1, 2, 3, 0,
                                      10, 0, 8, 1, 2, 3, 4,  5, 6, 7, 8};
    struct dns_question q;

    question("a.test", DNS_A);
    b.p[11] = 1;
    opt(4096, 0, options, sizeof(options));
    EXPECT(read_question(&q) == 0 && q.edns && q.udp_max == 4096);
    question("a.test", DNS_A);
    b.p[11] = 1;
    opt(100, 0, NULL, 0);
    EXPECT(read_question(&q) == 0 && q.edns && q.udp_max == 512);
}

TEST(bad_edns_is_refused)
{
    struct dns_question q;

    question("a.test", DNS_A);
    b.p[11] = 1;
    opt(1232, 1, NULL, 0);
    EXPECT(read_question(&q) == -DNS_FORMERR && !q.edns);
    question("a.test", DNS_A);
    b.p[11] = 2;
    opt(1232, 0, NULL, 0);
    opt(1232, 0, NULL, 0);
    EXPECT(read_question(&q) == -DNS_FORMERR);
    question("a.test", DNS_A);
    b.p[11] = 1;
    opt(1232, 0, "abcd", 4);
    b.len -= 2;
    EXPECT(read_question(&q) == -DNS_FORMERR);
    question("a.test", DNS_A);
    b.p[11] = 200;
    opt(1232, 0, NULL, 0);
    EXPECT(read_question(&q) == -DNS_FORMERR);
}

TEST(what_is_no_question_has_no_answer)
{
    struct dns_question q;

    question("a.test", DNS_A);
    b.len = 11;
    EXPECT(read_question(&q) == -EBADMSG);
    b.len = 0;
    EXPECT(read_question(&q) == -EBADMSG);
    question("a.test", DNS_A);
    b.p[2] |= 0x80; /* an answer: two guards must not talk to each other for ever */
    EXPECT(read_question(&q) == -EBADMSG);
}

TEST(other_operations_are_not_implemented)
{
    struct dns_question q;

    for (unsigned opcode = 1; opcode < 16; opcode++) {
        question("a.test", DNS_A);
        b.p[2] = (uint8_t)(opcode << 3);
        EXPECT(read_question(&q) == -DNS_NOTIMP && q.id == 7 && q.wire_len == 0);
    }
}

TEST(counts_must_be_those_of_one_question)
{
    struct dns_question q;

    for (int field = 4; field < 10; field += 2) {
        question("a.test", DNS_A);
        b.p[field + 1] += 1;
        EXPECT(read_question(&q) == -DNS_FORMERR);
    }
    head(7, 0x0100, 0, 0, 0, 0);
    EXPECT(read_question(&q) == -DNS_FORMERR);
    question("a.test", DNS_A);
    b.p[2] |= 2; /* cut */
    EXPECT(read_question(&q) == -DNS_FORMERR);
    question("a.test", DNS_A);
    put("x", 1);
    EXPECT(read_question(&q) == -DNS_FORMERR);
}

TEST(every_cut_question_is_malformed)
{
    struct dns_question q;

    question("www.example.test", DNS_A);
    b.p[11] = 1;
    opt(1232, 0, "abcd", 4);
    size_t whole = b.len;
    for (size_t len = 12; len < whole; len++) {
        b.len = len;
        EXPECT(read_question(&q) == -DNS_FORMERR);
    }
}

TEST(names_have_their_bounds)
{
    struct dns_question q;
    uint8_t label[65];

    memset(label, 'a', sizeof(label));
    /* 253 characters: three labels of 63 and one of 61. */
    head(7, 0x0100, 1, 0, 0, 0);
    for (int i = 0; i < 4; i++) {
        label[0] = i < 3 ? 63 : 61;
        put(label, 1u + label[0]);
    }
    put("\0\0\1\0\1", 5);
    EXPECT(read_question(&q) == 0 && strlen(q.name) == POLICY_NAME_MAX && q.wire_len == 259);
    head(7, 0x0100, 1, 0, 0, 0);
    for (int i = 0; i < 4; i++) {
        label[0] = i < 3 ? 63 : 62;
        put(label, 1u + label[0]);
    }
    put("\0\0\1\0\1", 5);
    EXPECT(read_question(&q) == -DNS_FORMERR);
    /* 64 is no length. */
    head(7, 0x0100, 1, 0, 0, 0);
    label[0] = 64;
    put(label, 65);
    put("\0\0\1\0\1", 5);
    EXPECT(read_question(&q) == -DNS_FORMERR);
    /* 127 labels of one letter. */
    head(7, 0x0100, 1, 0, 0, 0);
    for (int i = 0; i < 127; i++)
        put("\1a", 2);
    put("\0\0\1\0\1", 5);
    EXPECT(read_question(&q) == 0 && strlen(q.name) == POLICY_NAME_MAX);
}

TEST(a_question_has_no_pointers)
{
    struct dns_question q;

    for (unsigned target = 0; target < 40; target++) {
        head(7, 0x0100, 1, 0, 0, 0);
        put("\1a", 2);
        put16(0xc000 | target);
        put("\0\1\0\1", 4);
        EXPECT(read_question(&q) == -DNS_FORMERR);
    }
}

TEST(names_that_have_no_text_are_refused_and_echoed)
{
    static const char *const odd[] = {"a.b", "a\\b", "a b", "\x7f", "\xc3\xa4", "a\nb"};
    struct dns_question q;

    for (size_t i = 0; i < ARRAY_SIZE(odd); i++) {
        head(7, 0x0100, 1, 0, 0, 0);
        uint8_t n = (uint8_t)strlen(odd[i]);
        put(&n, 1);
        put(odd[i], n);
        put("\4test\0\0\1\0\1", 10);
        EXPECT(read_question(&q) == -DNS_REFUSED && q.name[0] == '\0');
        EXPECT(q.wire_len == b.len - 12);
    }
    head(7, 0x0100, 1, 0, 0, 0);
    put("\6a.test\0\0\1\0\1", 12);
    EXPECT(read_question(&q) == -DNS_REFUSED);
    head(7, 0x0100, 1, 0, 0, 0);
    put("\7a\0.evil\4test\0\0\1\0\1", 18);
    EXPECT(read_question(&q) == -DNS_REFUSED);
    /* CHAOS */
    question("version.bind", DNS_TXT);
    b.p[b.len - 1] = 3;
    EXPECT(read_question(&q) == -DNS_REFUSED);
}

/* ---- replies --------------------------------------------------------------------------------- */

static struct strbuf reply(const struct dns_question *q, int rcode, const struct dns_record *r,
                           size_t n, size_t max)
{
    struct strbuf s;

    strbuf_init(&s, DNS_MESSAGE_MAX);
    dns_reply_write(q, rcode, r, n, max, &s);
    return s;
}

TEST(a_reply_has_the_question_and_its_records)
{
    struct dns_question q;
    struct dns_record r = {
        .type = DNS_A, .ttl = 60, .len = 4, .data = (const uint8_t *)"\x5d\xb8\xd8\x22"};

    question("A.Test", DNS_A);
    read_question(&q);
    snprintf(r.name, sizeof(r.name), "a.test");
    AUTO(strbuf_done) struct strbuf s = reply(&q, DNS_NOERROR, &r, 1, 512);
    EXPECT(s.len == b.len + 16);
    EXPECT(memcmp(s.buf, "\0\7\x81\x80\0\1\0\1\0\0\0\0", 12) == 0);
    EXPECT(memcmp(s.buf + 12, b.p + 12, b.len - 12) == 0);
    EXPECT(memcmp(s.buf + b.len, "\xc0\x0c\0\1\0\1\0\0\0\x3c\0\4\x5d\xb8\xd8\x22", 16) == 0);
}

TEST(a_refusal_says_so_to_who_speaks_edns)
{
    struct dns_question q;

    question("a.test", DNS_A);
    b.p[11] = 1;
    opt(1232, 0, "\0\x8\0\4\0\1\0\0", 8);
    read_question(&q);
    AUTO(strbuf_done) struct strbuf s = reply(&q, DNS_REFUSED, NULL, 0, 512);
    EXPECT(s.len == 12u + q.wire_len + 17 && (s.buf[3] & 0xf) == DNS_REFUSED && s.buf[11] == 1);
    /* OPT, its size, and one option: RFC 8914, blocked. No client subnet. */
    EXPECT(memcmp(s.buf + s.len - 17, "\0\0\x29\4\xd0\0\0\0\0\0\6\0\xf\0\2\0\xf", 17) == 0);
}

TEST(what_does_not_fit_is_cut_and_said)
{
    struct dns_question q;
    struct dns_record r[40] = {{0}};

    question("a.test", DNS_AAAA);
    read_question(&q);
    for (int i = 0; i < 40; i++) {
        r[i] = (struct dns_record){
            .type = DNS_AAAA, .len = 16, .data = (const uint8_t *)"0123456789abcdef"};
        snprintf(r[i].name, sizeof(r[i].name), "a.test");
    }
    AUTO(strbuf_done) struct strbuf s = reply(&q, DNS_NOERROR, r, 40, 512);
    EXPECT(s.len <= 512 && s.len > 512 - 28);
    EXPECT(s.buf[2] & 2);
    EXPECT((unsigned)s.buf[7] == (s.len - 12 - q.wire_len) / 28);
    AUTO(strbuf_done) struct strbuf whole = reply(&q, DNS_NOERROR, r, 40, DNS_MESSAGE_MAX);
    EXPECT(!(whole.buf[2] & 2) && whole.buf[7] == 40);
}

/* ---- answers --------------------------------------------------------------------------------- */

static struct dns_answer a;

static int read_answer(const char *name, uint16_t type)
{
    AUTO(free_p) uint8_t *copy = malloc(b.len + 1);

    memcpy(copy, b.p, b.len);
    memset(&a, 0xaa, sizeof(a));
    return dns_answer_read(copy, b.len, 7, name, type, &a);
}

static void answer_head(const char *name, unsigned type, unsigned n)
{
    head(7, 0x8180, 1, n, 0, 0);
    put_name(name);
    put16(type);
    put16(1);
}

TEST(an_answer_is_read)
{
    answer_head("A.tEst", DNS_A, 2);
    record(NULL, DNS_A, 60, "\x5d\xb8\xd8\x22", 4);
    record("a.TEST", DNS_A, 0x80000001u, "\x5d\xb8\xd8\x23", 4);
    EXPECT(read_answer("A.tEst", DNS_A) == 0);
    EXPECT(a.n == 2 && a.rcode == 0 && !a.truncated);
    EXPECT(a.records[0].ttl == 60 && a.records[1].ttl == 0);
    EXPECT(memcmp(a.records[1].data, "\x5d\xb8\xd8\x23", 4) == 0);
    EXPECT_STR(a.records[0].name, "a.test");
}

TEST(only_the_answer_to_the_question_counts)
{
    answer_head("A.tEst", DNS_A, 0);
    EXPECT(read_answer("A.tEst", DNS_A) == 0);
    EXPECT(read_answer("a.tEst", DNS_A) == -EBADMSG);
    EXPECT(read_answer("A.tEst", DNS_AAAA) == -EBADMSG);
    EXPECT(read_answer("A.tEst.b", DNS_A) == -EBADMSG);
    b.p[1] = 8;
    EXPECT(read_answer("A.tEst", DNS_A) == -EBADMSG);
    b.p[1] = 7;
    b.p[5] = 2;
    EXPECT(read_answer("A.tEst", DNS_A) == -EBADMSG);
    b.p[5] = 1;
    b.p[2] = 1;
    EXPECT(read_answer("A.tEst", DNS_A) == -EBADMSG);
    b.p[2] = 0x81 | 5 << 3;
    EXPECT(read_answer("A.tEst", DNS_A) == -EBADMSG);
    b.p[2] = 0x81;
    EXPECT(read_answer("A.tEst", DNS_A) == 0);
    put("x", 1);
    EXPECT(read_answer("A.tEst", DNS_A) == -EBADMSG);
}

TEST(every_cut_answer_is_malformed)
{
    answer_head("a.test", DNS_MX, 1);
    b.p[9] = 1;
    record(NULL, DNS_MX, 60, "\0\12\4mail\xc0\x0c", 9);
    record("test", DNS_SOA, 60, "\0\0abcdefghijklmnopqrst", 22);
    size_t whole = b.len;
    EXPECT(read_answer("a.test", DNS_MX) == 0 && a.n == 1);
    EXPECT(a.records[0].len == 15 && memcmp(a.records[0].data, "\0\12\4mail\1a\4test", 15) == 0);
    for (size_t len = 0; len < whole; len++) {
        b.len = len;
        EXPECT(read_answer("a.test", DNS_MX) == -EBADMSG);
    }
}

TEST(cnames_are_followed_in_any_order_and_others_left_out)
{
    answer_head("a.test", DNS_A, 5);
    record("c.test", DNS_A, 5, "\x5d\xb8\xd8\x22", 4);
    record("evil.test", DNS_A, 5, "\x0a\0\0\1", 4);
    record("b.test", DNS_CNAME, 5, "\1c\4test", 8);
    record(NULL, DNS_A, 5, "\x0a\0\0\2", 4); /* beside a CNAME: not the name's any more */
    record(NULL, DNS_CNAME, 5, "\1b\4test", 8);
    EXPECT(read_answer("a.test", DNS_A) == 0);
    EXPECT(a.n == 3 && a.records[0].type == DNS_CNAME && a.records[1].type == DNS_CNAME);
    EXPECT(a.records[2].type == DNS_A && a.records[2].data[0] == 0x5d);
    EXPECT_STR(a.records[2].name, "c.test");
    /* Who asks for the CNAME gets it alone. */
    answer_head("a.test", DNS_CNAME, 2);
    record("b.test", DNS_CNAME, 5, "\1c\4test", 8);
    record(NULL, DNS_CNAME, 5, "\1b\4test", 8);
    EXPECT(read_answer("a.test", DNS_CNAME) == 0 && a.n == 1);
}

TEST(a_ring_of_cnames_is_a_failure)
{
    answer_head("a.test", DNS_A, 2);
    record(NULL, DNS_CNAME, 5, "\1b\4test", 8);
    record("b.test", DNS_CNAME, 5, "\1a\4test", 8);
    EXPECT(read_answer("a.test", DNS_A) == 0 && a.n == 0 && a.rcode == DNS_SERVFAIL);
    answer_head("a.test", DNS_A, 1);
    record(NULL, DNS_CNAME, 5, "\xc0\x0c", 2);
    EXPECT(read_answer("a.test", DNS_A) == 0 && a.n == 0 && a.rcode == DNS_SERVFAIL);
}

TEST(pointers_only_go_back)
{
    static const unsigned bad[] = {0, 5, 11, 24, 25, 26, 0x3fff};

    for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
        answer_head("a.test", DNS_A, 1);
        EXPECT(b.len == 24);
        put16(0xc000 | bad[i]);
        put("\0\1\0\1\0\0\0\5\0\4abcd", 14);
        EXPECT(read_answer("a.test", DNS_A) == -EBADMSG);
    }
    /* A long name out of two of the same: over the limit. */
    answer_head("a.test", DNS_NS, 1);
    AUTO(strbuf_done) struct strbuf s = {0};
    strbuf_init(&s, 600);
    for (int i = 0; i < 125; i++)
        strbuf_add(&s, "\1a", 2);
    strbuf_add(&s, "\xc0\x0c", 2);
    record(NULL, DNS_NS, 5, s.buf, s.len);
    EXPECT(read_answer("a.test", DNS_NS) == 0 && a.n == 0);
}

TEST(three_hundred_addresses_are_as_many_as_there_is_room_for)
{
    answer_head("a.test", DNS_A, 3000);
    for (unsigned i = 0; i < 3000; i++)
        record(NULL, DNS_A, 5, (uint8_t[]){93, 184, (uint8_t)(i >> 8), (uint8_t)i}, 4);
    EXPECT(read_answer("a.test", DNS_A) == 0 && a.n == DNS_RECORDS_MAX);
}

TEST(data_of_the_wrong_shape_is_left_out)
{
    answer_head("a.test", DNS_A, 3);
    record(NULL, DNS_A, 5, "abc", 3);
    record(NULL, DNS_A, 5, "abcde", 5);
    record(NULL, DNS_A, 5, "abcd", 4);
    EXPECT(read_answer("a.test", DNS_A) == 0 && a.n == 1);
    answer_head("a.test", DNS_TXT, 4);
    record(NULL, DNS_TXT, 5, "\5abc", 4);
    record(NULL, DNS_TXT, 5, "", 0);
    record(NULL, DNS_TXT, 5, "\3abc\0\1x", 7);
    record(NULL, DNS_TXT, 5, "\3abc\2x", 6);
    EXPECT(read_answer("a.test", DNS_TXT) == 0 && a.n == 1 && a.records[0].len == 7);
    answer_head("a.test", DNS_SRV, 2);
    record(NULL, DNS_SRV, 5, "\0\0\0\0\0\x50\1b\xc0\x0c", 10);
    record(NULL, DNS_SRV, 5, "\0\0\0\0\0\x50\1b\xc0\x0cx", 11);
    EXPECT(read_answer("a.test", DNS_SRV) == 0 && a.n == 1 && a.records[0].len == 16);
    /* A type that is not known is not shown. */
    answer_head("a.test", 99, 1);
    record(NULL, 99, 5, "abc", 3);
    EXPECT(read_answer("a.test", 99) == 0 && a.n == 0);
}

TEST(large_data_is_bounded)
{
    static uint8_t text[DNS_RDATA_MAX + 256];

    for (size_t i = 0; i < sizeof(text); i += 256)
        text[i] = 255;
    answer_head("a.test", DNS_TXT, 4);
    record(NULL, DNS_TXT, 5, text, sizeof(text));
    for (int i = 0; i < 3; i++)
        record(NULL, DNS_TXT, 5, text, DNS_RDATA_MAX);
    EXPECT(read_answer("a.test", DNS_TXT) == 0 && a.n == 2);
}

TEST(https_has_no_hints_and_no_ech)
{
    static const uint8_t full[] = {
        0, 1, 1, 'x', 0,                  /* priority, target */
        0, 0, 0, 4,   0,    1,    0,   4, /* mandatory: alpn, ipv4hint */
        0, 1, 0, 3,   2,    'h',  '2',    /* alpn */
        0, 3, 0, 2,   0x20, 0xfb,         /* port */
        0, 4, 0, 4,   10,   0,    0,   1, /* ipv4hint */
        0, 5, 0, 3,   'e',  'c',  'h',    /* ech */
        0, 6, 0, 16,  0,    0,    0,   0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, /* ipv6hint */
        0, 7, 0, 1,   '/', /* dohpath: not one of ours */
    };
    static const uint8_t left[] = {0, 1, 1, 'x', 0,   0,   0, 0, 2, 0, 1,    0,
                                   1, 0, 3, 2,   'h', '2', 0, 3, 0, 2, 0x20, 0xfb};

    answer_head("a.test", DNS_HTTPS, 1);
    record(NULL, DNS_HTTPS, 5, full, sizeof(full));
    EXPECT(read_answer("a.test", DNS_HTTPS) == 0 && a.n == 1);
    EXPECT(a.records[0].len == sizeof(left) && memcmp(a.records[0].data, left, sizeof(left)) == 0);
    /* Cut anywhere, it is none. */
    for (size_t n = 0; n < sizeof(full); n++) {
        answer_head("a.test", DNS_HTTPS, 1);
        record(NULL, DNS_HTTPS, 5, full, n);
        EXPECT(read_answer("a.test", DNS_HTTPS) == 0);
        EXPECT(a.n == 0 || memmem(a.records[0].data, a.records[0].len, "ech", 3) == NULL);
    }
}

TEST(https_with_what_cannot_be_kept_is_left_out)
{
    /* mandatory: a key that is not known; keys not in order; mandatory twice in itself. */
    static const uint8_t unknown[] = {0, 1, 0, 0, 0, 0, 2, 0x12, 0x34};
    static const uint8_t disorder[] = {0, 1, 0, 0, 3, 0, 2, 1, 2, 0, 1, 0, 3, 2, 'h', '2'};
    static const uint8_t itself[] = {0, 1, 0, 0, 0, 0, 2, 0, 0};

    answer_head("a.test", DNS_SVCB, 3);
    record(NULL, DNS_SVCB, 5, unknown, sizeof(unknown));
    record(NULL, DNS_SVCB, 5, disorder, sizeof(disorder));
    record(NULL, DNS_SVCB, 5, itself, sizeof(itself));
    EXPECT(read_answer("a.test", DNS_SVCB) == 0 && a.n == 0);
}

TEST(a_cut_answer_is_known_as_one)
{
    answer_head("a.test", DNS_A, 9);
    b.p[2] |= 2;
    record(NULL, DNS_A, 5, "ab", 2);
    EXPECT(read_answer("a.test", DNS_A) == 0 && a.truncated && a.n == 0);
}

TEST(a_longer_code_is_a_failure)
{
    answer_head("a.test", DNS_A, 0);
    b.p[11] = 1;
    opt(1232, 0x0100, NULL, 0); /* BADVERS */
    EXPECT(read_answer("a.test", DNS_A) == 0 && a.rcode == DNS_SERVFAIL);
}

/* ---- our questions, and names ---------------------------------------------------------------- */

TEST(our_question_is_a_question)
{
    AUTO(strbuf_done) struct strbuf s = {0};
    struct dns_question q;

    strbuf_init(&s, 512);
    dns_query_write(4711, "wWw.a.TEST", DNS_AAAA, &s);
    EXPECT(dns_question_read((const uint8_t *)s.buf, s.len, &q) == 0);
    EXPECT_STR(q.name, "www.a.test");
    EXPECT(q.id == 4711 && q.type == DNS_AAAA && q.edns && q.udp_max == DNS_UDP_MAX);
    EXPECT(memcmp(q.wire, "\3wWw\1a\4TEST", 11) == 0);
}

TEST(names_of_addresses)
{
    struct net_addr x;
    char text[NET_ADDR_TEXT_MAX];

    EXPECT(dns_name_reverse("34.216.184.93.in-addr.arpa", &x) == 0);
    net_addr_text(&x, text);
    EXPECT_STR(text, "93.184.216.34");
    EXPECT(dns_name_reverse("1.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.8.2.6.0.6.2."
                            "ip6.arpa",
                            &x) == 0);
    net_addr_text(&x, text);
    EXPECT_STR(text, "2606:2800::1");
    EXPECT(dns_name_reverse("216.184.93.in-addr.arpa", &x) < 0);
    EXPECT(dns_name_reverse("1.34.216.184.93.in-addr.arpa", &x) < 0);
    EXPECT(dns_name_reverse("256.216.184.93.in-addr.arpa", &x) < 0);
    EXPECT(dns_name_reverse("x.ip6.arpa", &x) < 0);
    EXPECT(dns_name_reverse(".in-addr.arpa", &x) < 0);
    EXPECT(dns_name_reverse("in-addr.arpa", &x) < 0);
    EXPECT(dns_name_reverse("a.test", &x) < 0);
}
