/* ClientHellos: one that OpenSSL makes, and ones made by hand with one thing wrong in each. */
#include <openssl/ssl.h>

#include "guard/peek.h"
#include "tap.h"

/* ---- making one ------------------------------------------------------------------------------ */

struct bytes {
    uint8_t p[20000];
    size_t len;
};

static void put(struct bytes *b, const void *p, size_t len)
{
    memcpy(b->p + b->len, p, len);
    b->len += len;
}

static void put_number(struct bytes *b, size_t n, unsigned bytes)
{
    while (bytes-- > 0)
        b->p[b->len++] = (uint8_t)(n >> bytes * 8);
}

static void put_extension(struct bytes *b, unsigned type, const void *p, size_t len)
{
    put_number(b, type, 2);
    put_number(b, len, 2);
    put(b, p, len);
}

/* An SNI extension with one name of the given type. */
static void put_name(struct bytes *b, unsigned type, const void *name, size_t len)
{
    struct bytes list = {.len = 0};

    put_number(&list, len + 3, 2);
    put_number(&list, type, 1);
    put_number(&list, len, 2);
    put(&list, name, len);
    put_extension(b, 0, list.p, list.len);
}

/* The message, with these extensions; NULL: without the field. */
static void make_message(struct bytes *b, const struct bytes *extensions)
{
    struct bytes body = {.len = 0};
    uint8_t random[32] = {7};

    put_number(&body, 0x0303, 2);
    put(&body, random, sizeof(random));
    put_number(&body, 0, 1);
    put_number(&body, 4, 2);
    put_number(&body, 0x13011302, 4);
    put_number(&body, 0x0100, 2);
    if (extensions) {
        put_number(&body, extensions->len, 2);
        put(&body, extensions->p, extensions->len);
    }
    put_number(b, 1, 1);
    put_number(b, body.len, 3);
    put(b, body.p, body.len);
}

/* In records of so many bytes each. */
static void make_records(struct bytes *b, const struct bytes *message, size_t each)
{
    for (size_t at = 0; at < message->len; at += each) {
        size_t n = message->len - at < each ? message->len - at : each;
        put_number(b, 0x160301, 3);
        put_number(b, n, 2);
        put(b, message->p + at, n);
    }
}

static void make(struct bytes *b, const struct bytes *extensions)
{
    struct bytes message = {.len = 0};

    b->len = 0;
    make_message(&message, extensions);
    make_records(b, &message, 16384);
}

static struct peek look(const struct bytes *b)
{
    struct peek k;

    peek_bytes(b->p, b->len, &k);
    return k;
}

static struct peek look_name(const void *name, size_t len)
{
    struct bytes extensions = {.len = 0}, b;

    put_name(&extensions, 0, name, len);
    make(&b, &extensions);
    return look(&b);
}

static enum peek_what what_of(const struct bytes *extensions)
{
    struct bytes b;

    make(&b, extensions);
    return look(&b).what;
}

/* Says TLS with the last byte, and "more" before. */
static bool whole_at_end_only(const struct bytes *b)
{
    struct peek k;

    for (size_t n = 0; n < b->len; n++) {
        peek_bytes(b->p, n, &k);
        if (k.what != PEEK_MORE || k.name[0])
            return false;
    }
    return look(b).what == PEEK_TLS;
}

static void make_real(struct bytes *b, char *name)
{
    SSL_CTX *ctx = SSL_CTX_new(TLS_client_method());
    SSL *ssl = SSL_new(ctx);
    BIO *in = BIO_new(BIO_s_mem()), *out = BIO_new(BIO_s_mem());

    SSL_set_bio(ssl, in, out);
    if (name)
        SSL_set_tlsext_host_name(ssl, name);
    SSL_connect(ssl);
    b->len = (size_t)BIO_read(out, b->p, (int)sizeof(b->p));
    SSL_free(ssl);
    SSL_CTX_free(ctx);
}

/* ---- what passes ----------------------------------------------------------------------------- */

TEST(a_real_hello_has_its_name)
{
    struct bytes b;

    make_real(&b, (char[]){"Www.A.test"});
    EXPECT(whole_at_end_only(&b));
    EXPECT_STR(look(&b).name, "www.a.test");
    EXPECT(!look(&b).ech && !look(&b).address);
}

TEST(a_real_hello_without_a_name_has_none)
{
    struct bytes b;

    make_real(&b, NULL);
    EXPECT(look(&b).what == PEEK_TLS);
    EXPECT_STR(look(&b).name, "");
    EXPECT(!look(&b).address);
}

TEST(a_hello_in_many_records_is_put_together)
{
    struct bytes extensions = {.len = 0}, message = {.len = 0}, b;

    put_name(&extensions, 0, "a.test", 6);
    make_message(&message, &extensions);
    for (size_t each = 1; each < 80; each++) {
        b.len = 0;
        make_records(&b, &message, each);
        EXPECT(whole_at_end_only(&b));
        EXPECT_STR(look(&b).name, "a.test");
    }
}

TEST(what_comes_after_the_hello_is_not_looked_at)
{
    struct bytes extensions = {.len = 0}, b;
    struct peek k;

    put_name(&extensions, 0, "a.test", 6);
    make(&b, &extensions);
    put(&b, "\x17\x03\x03\xff\xff early data", 16);
    k = look(&b);
    EXPECT(k.what == PEEK_TLS);
    EXPECT_STR(k.name, "a.test");
}

TEST(no_extensions_at_all_is_an_old_hello)
{
    struct bytes b, none = {.len = 0};

    make(&b, NULL);
    EXPECT(look(&b).what == PEEK_TLS && !look(&b).name[0]);
    EXPECT(what_of(&none) == PEEK_TLS);
}

TEST(ech_is_seen)
{
    struct bytes extensions = {.len = 0}, b;

    put_name(&extensions, 0, "cover.test", 10);
    put_extension(&extensions, 0xfe0d, "\0x", 2);
    make(&b, &extensions);
    EXPECT(look(&b).what == PEEK_TLS && look(&b).ech);
    EXPECT_STR(look(&b).name, "cover.test");
}

TEST(addresses_are_no_names)
{
    static const char *const addresses[] = {"93.184.216.34", "2606:2800::1",   "::ffff:10.9.9.9",
                                            "0x7f.1",        "2130706433",     "0177.0.0.1",
                                            "127.1",         "93.184.216.34.", "1.2.3.4.5"};

    for (size_t i = 0; i < ARRAY_SIZE(addresses); i++) {
        struct peek k = look_name(addresses[i], strlen(addresses[i]));
        EXPECT(k.what == PEEK_TLS && k.address);
        EXPECT_STR(k.name, "");
    }
    EXPECT(!look_name("1.2.3.4.test", 12).address);
    EXPECT_STR(look_name("a.test.", 7).name, "a.test");
}

/* ---- what does not --------------------------------------------------------------------------- */

TEST(names_that_are_none_are_bad)
{
    char longest[256];

    memset(longest, 'a', sizeof(longest));
    EXPECT(look_name("", 0).what == PEEK_BAD);
    EXPECT(look_name("a.test\0.evil", 12).what == PEEK_BAD);
    EXPECT(look_name("a\0.1", 4).what == PEEK_BAD);
    EXPECT(look_name("a..test", 7).what == PEEK_BAD);
    EXPECT(look_name(".", 1).what == PEEK_BAD);
    EXPECT(look_name("a.test/", 7).what == PEEK_BAD);
    EXPECT(look_name("a.test\n", 7).what == PEEK_BAD);
    EXPECT(look_name("[::1]", 5).what == PEEK_BAD);
    EXPECT(look_name("*.a.test", 8).what == PEEK_BAD);
    EXPECT(look_name("\xc3\xa4.test", 7).what == PEEK_BAD);
    EXPECT(look_name("\x1b[0m.1", 6).what == PEEK_BAD);
    EXPECT(look_name(longest, 64).what == PEEK_BAD);
    EXPECT(look_name(longest, 256).what == PEEK_BAD);
}

TEST(two_names_are_bad)
{
    static const uint8_t list[] = "\0\x12\0\0\6a.test\0\0\6b.test";
    struct bytes extensions = {.len = 0};

    put_extension(&extensions, 0, list, sizeof(list) - 1);
    EXPECT(what_of(&extensions) == PEEK_BAD);
    extensions.len = 0;
    put_name(&extensions, 0, "a.test", 6);
    put_name(&extensions, 0, "a.test", 6);
    EXPECT(what_of(&extensions) == PEEK_BAD);
}

TEST(other_kinds_of_names_are_bad)
{
    struct bytes extensions = {.len = 0};

    put_name(&extensions, 1, "a.test", 6);
    EXPECT(what_of(&extensions) == PEEK_BAD);
    extensions.len = 0;
    put_extension(&extensions, 0, "", 0);
    EXPECT(what_of(&extensions) == PEEK_BAD);
}

TEST(an_extension_that_comes_twice_is_bad)
{
    struct bytes extensions = {.len = 0};

    put_extension(&extensions, 0xabcd, "", 0);
    EXPECT(what_of(&extensions) == PEEK_TLS);
    put_extension(&extensions, 0xabcd, "", 0);
    EXPECT(what_of(&extensions) == PEEK_BAD);
}

/* Each byte that is a length, one more and one less: nothing fits any more. */
TEST(lengths_must_fit_exactly)
{
    static const size_t lengths[] = {8, 43, 45, 50, 53, 57, 59, 62};
    struct bytes extensions = {.len = 0}, b;

    put_name(&extensions, 0, "a.test", 6);
    make(&b, &extensions);
    for (size_t i = 0; i < ARRAY_SIZE(lengths); i++) {
        b.p[lengths[i]]++;
        EXPECT(look(&b).what != PEEK_TLS);
        b.p[lengths[i]] -= 2;
        EXPECT(look(&b).what != PEEK_TLS);
        b.p[lengths[i]]++;
    }
    EXPECT(look(&b).what == PEEK_TLS);
}

TEST(more_in_the_record_than_the_hello_is_bad)
{
    struct bytes message = {.len = 0}, b = {.len = 0};

    make_message(&message, NULL);
    put_number(&message, 0, 1);
    make_records(&b, &message, 16384);
    EXPECT(look(&b).what == PEEK_BAD);
}

TEST(records_of_other_kinds_are_bad)
{
    struct bytes message = {.len = 0}, b = {.len = 0};

    make_message(&message, NULL);
    make_records(&b, &message, 20);
    b.p[25] = 0x15;
    EXPECT(look(&b).what == PEEK_BAD);
    b.p[25] = 0x16;
    EXPECT(look(&b).what == PEEK_TLS);
    b.p[2] = 5;
    EXPECT(look(&b).what == PEEK_BAD);
    b.p[2] = 1;
    b.p[5] = 2; /* not a ClientHello */
    EXPECT(look(&b).what == PEEK_BAD);
}

TEST(empty_and_too_long_records_are_bad)
{
    struct peek k;

    peek_bytes((const uint8_t *)"\x16\x03\x01\0\0", 5, &k);
    EXPECT(k.what == PEEK_BAD);
    peek_bytes((const uint8_t *)"\x16\x03\x01\x40\x01", 5, &k);
    EXPECT(k.what == PEEK_BAD);
    peek_bytes((const uint8_t *)"\x16\x03\x01\x40\x00", 5, &k);
    EXPECT(k.what == PEEK_MORE);
}

TEST(a_hello_that_does_not_fit_is_never_passed_on)
{
    struct bytes b;
    struct peek k;
    static uint8_t small[PEEK_MAX + 100];
    size_t at = 0;

    peek_bytes((const uint8_t *)"\x16\x03\x01\x40\x00\x01\x00\x40\x00", 9, &k);
    EXPECT(k.what == PEEK_BAD);
    /* one byte in each record: what is announced fits, and is never whole */
    b.len = 0;
    put(&b, "\x01\x00\x20\x00", 4);
    for (size_t i = 0; at + 6 <= sizeof(small); i++, at += 6) {
        memcpy(small + at, "\x16\x03\x01\0\1", 5);
        small[at + 5] = i < 4 ? b.p[i] : 3;
    }
    peek_bytes(small, PEEK_MAX - 1, &k);
    EXPECT(k.what == PEEK_MORE);
    peek_bytes(small, PEEK_MAX, &k);
    EXPECT(k.what == PEEK_BAD);
    peek_bytes(small, at, &k);
    EXPECT(k.what == PEEK_BAD);
}

TEST(hellos_of_ssl2_and_lone_bytes_are_something_else)
{
    struct peek k;

    peek_bytes((const uint8_t *)"\x80\x2e\x01\x03\x01\x00\x15", 7, &k);
    EXPECT(k.what == PEEK_OTHER);
    peek_bytes((const uint8_t *)"\x16\x02\x01", 3, &k);
    EXPECT(k.what == PEEK_OTHER);
    peek_bytes((const uint8_t *)"\x16", 1, &k);
    EXPECT(k.what == PEEK_MORE);
}

TAP_MAIN
