/* The messages of an agent: numbers, what is kept, who may go on. */
#include "front/acp/backlog.h"

#include <stdio.h>

#include "lib/text/strbuf.h"
#include "lib/http/ws_codec.h"
#include "tap.h"

#define LIMIT (64u * 1024)

static void add(struct backlog *b, unsigned from, unsigned n, size_t size)
{
    AUTO(strbuf_done) struct strbuf text = {0};

    strbuf_init(&text, 4u << 20);
    for (unsigned i = from; i < from + n; i++) {
        strbuf_reset(&text);
        strbuf_addf(&text, "{\"n\":%u,\"x\":\"", i);
        while (text.len + 2 < size)
            strbuf_addch(&text, 'x');
        strbuf_addstr(&text, "\"}");
        EXPECT(backlog_add(b, text.buf, text.len) == 0);
    }
}

/* Reads up to `most` messages from the cursor and checks that they are those that it says. Pieces
 * are of at most `max` bytes. Returns how many were read, or -errno. */
static int read_some(const struct backlog *b, struct backlog_cursor *c, size_t max, int most)
{
    AUTO(strbuf_done) struct strbuf all = {0};
    uint64_t number = c->next;
    int n = 0;

    strbuf_init(&all, 64u << 20);
    EXPECT(c->frame_left == 0);
    while (n < most || c->frame_left > 0) {
        const char *p;
        ssize_t k = backlog_take(b, c, max, &p);

        if (k < 0)
            return (int)k;
        if (k == 0)
            break;
        EXPECT((size_t)k <= max);
        strbuf_add(&all, p, (size_t)k);
        if (c->frame_left == 0)
            n = (int)(c->next - number);
    }
    EXPECT(c->boundary == c->at || c->frame_left > 0);
    for (size_t at = 0; at < all.len; number++) {
        size_t size = ws_frame_size(all.buf + at);
        char head[32];

        snprintf(head, sizeof(head), "{\"n\":%llu,", (unsigned long long)number);
        EXPECT(at + size <= all.len && (uint8_t)all.buf[at] == 0x81);
        EXPECT(memmem(all.buf + at, 32, head, strlen(head)) != NULL);
        EXPECT(all.buf[at + size - 1] == '}');
        at += size;
    }
    EXPECT(number == c->next);
    return n;
}

TEST(messages_come_in_order_whatever_the_pieces)
{
    static const size_t pieces[] = {1, 7, 100, 5000, 1u << 20};
    struct backlog b;

    backlog_init(&b, LIMIT);
    add(&b, 1, 10, 30);
    add(&b, 11, 5, 20000);
    add(&b, 16, 10, 300);
    for (size_t i = 0; i < ARRAY_SIZE(pieces); i++) {
        struct backlog_cursor c;

        EXPECT(backlog_seek(&b, 1, &c) == 0);
        EXPECT(read_some(&b, &c, pieces[i], 1000) == 25);
        EXPECT(c.next == 26 && c.boundary == b.end);
    }
    backlog_drop(&b);
}

TEST(a_cursor_at_the_end_sees_what_comes)
{
    struct backlog_cursor c;
    struct backlog b;

    backlog_init(&b, LIMIT);
    EXPECT(backlog_seek(&b, 1, &c) == 0);
    EXPECT(read_some(&b, &c, 1000, 10) == 0);
    for (unsigned i = 0; i < 40; i++) {
        add(&b, i * 3 + 1, 3, 1500);
        EXPECT(read_some(&b, &c, 10000, 10) == 3);
        backlog_confirm(&b, c.boundary);
        EXPECT(backlog_waiting(&b) == 0 && backlog_kept(&b) <= LIMIT + 8192);
    }
    EXPECT(c.next == 121);
    backlog_drop(&b);
    EXPECT(read_some(&b, &c, 1000, 10) == 0);
    add(&b, 121, 2, 100);
    EXPECT(read_some(&b, &c, 1000, 10) == 2);
    backlog_drop(&b);
}

TEST(what_is_not_confirmed_stays_and_what_is_goes)
{
    struct backlog_cursor c, old;
    struct backlog b;

    backlog_init(&b, LIMIT);
    add(&b, 1, 100, 1000);
    EXPECT(b.first_number == 1 &&
           backlog_full(&b, b.confirmed, 0)); /* over the limit, and nothing is lost */
    EXPECT(backlog_seek(&b, 1, &old) == 0);
    EXPECT(backlog_seek(&b, 1, &c) == 0);
    EXPECT(read_some(&b, &c, 5000, 60) >= 60);
    backlog_confirm(&b, c.boundary);
    EXPECT(!backlog_full(&b, b.confirmed, 0) && backlog_kept(&b) <= LIMIT + 8192);
    EXPECT(b.first_number > 1 && b.first_number <= c.next);
    EXPECT(backlog_seek(&b, b.first_number - 1, &old) == -ESTALE);
    EXPECT(backlog_seek(&b, b.first_number, &old) == 0);
    EXPECT(read_some(&b, &old, 5000, 1000) == (int)(101 - b.first_number));
    EXPECT(backlog_seek(&b, 101, &old) == 0);
    EXPECT(backlog_seek(&b, 102, &old) == -ERANGE);
    /* A confirmation of nothing, or of the future, changes nothing. */
    uint64_t before = b.confirmed;
    backlog_confirm(&b, 0);
    backlog_confirm(&b, b.end + 1);
    EXPECT(b.confirmed == before);
    backlog_drop(&b);
}

TEST(a_reader_that_falls_behind_is_told)
{
    struct backlog_cursor slow, fast;
    struct backlog b;

    backlog_init(&b, LIMIT);
    add(&b, 1, 10, 1000);
    EXPECT(backlog_seek(&b, 1, &slow) == 0);
    EXPECT(backlog_seek(&b, 1, &fast) == 0);
    EXPECT(read_some(&b, &slow, 2500, 2) == 2);
    for (unsigned i = 0; i < 10; i++) {
        add(&b, 11 + i * 10, 10, 1000);
        read_some(&b, &fast, LIMIT, 1000);
        backlog_confirm(&b, fast.boundary);
    }
    EXPECT(read_some(&b, &slow, LIMIT, 1000) == -ESTALE);
    EXPECT(slow.next == 3);
    backlog_drop(&b);
}

TEST(a_client_that_comes_back_with_less_gets_the_rest_again)
{
    struct backlog_cursor c, again;
    struct backlog b;

    backlog_init(&b, LIMIT);
    add(&b, 1, 20, 1000);
    EXPECT(backlog_seek(&b, 1, &c) == 0);
    read_some(&b, &c, LIMIT, 1000);
    backlog_confirm(&b, c.boundary);
    EXPECT(backlog_seek(&b, 8, &again) == 0); /* after=7 */
    backlog_confirm_only(&b, &again);
    EXPECT(backlog_waiting(&b) > 12 * 1000);
    /* However much follows, what it has not said that it has is kept. */
    add(&b, 21, 100, 1000);
    backlog_seek_waiting(&b, &c);
    EXPECT(c.next == 8);
    EXPECT(read_some(&b, &c, LIMIT, 1000) == 113);
    backlog_drop(&b);
}

TEST(a_message_that_is_longer_than_the_limit)
{
    struct backlog_cursor c;
    struct backlog b;

    backlog_init(&b, LIMIT);
    EXPECT(!backlog_full(&b, b.confirmed, 3u << 20)); /* alone, it may grow */
    add(&b, 1, 1, 3u << 20);
    EXPECT(backlog_full(&b, b.confirmed, 0));
    EXPECT(backlog_seek(&b, 1, &c) == 0);
    EXPECT(read_some(&b, &c, 10000, 10) == 1);
    backlog_confirm(&b, c.boundary);
    EXPECT(!backlog_full(&b, b.confirmed, 0) && backlog_kept(&b) == 0);
    add(&b, 2, 1, 100);
    EXPECT(backlog_full(&b, b.confirmed, LIMIT) && !backlog_full(&b, b.confirmed, 1000));
    EXPECT(read_some(&b, &c, 10000, 10) == 1);
    backlog_drop(&b);
}

TEST(what_cannot_be_confirmed_is_kept_up_to_a_bound)
{
    struct backlog_cursor c;
    struct backlog b;

    backlog_init(&b, LIMIT);
    add(&b, 1, 300, 1000);
    EXPECT(backlog_seek(&b, 1, &c) == 0);
    read_some(&b, &c, LIMIT, 250);
    EXPECT(backlog_full(&b, b.confirmed, 0) && !backlog_full(&b, c.boundary, 0));
    backlog_assume(&b, c.boundary, 3 * LIMIT);
    EXPECT(b.first_number > 1 && c.boundary - b.begin >= 3 * LIMIT);
    EXPECT(c.boundary - b.begin < 3 * LIMIT + 16384);
    EXPECT(read_some(&b, &c, LIMIT, 1000) > 0 && c.next == 301);
    backlog_drop(&b);
}

TEST(dropped_and_the_numbers_go_on)
{
    struct backlog_cursor c;
    struct backlog b;

    backlog_init(&b, LIMIT);
    add(&b, 1, 5, 100);
    backlog_drop(&b);
    EXPECT(b.first_number == 6 && b.next == 6 && backlog_waiting(&b) == 0);
    EXPECT(backlog_seek(&b, 5, &c) == -ESTALE);
    EXPECT(backlog_seek(&b, 6, &c) == 0);
    add(&b, 6, 1, 100);
    EXPECT(read_some(&b, &c, 1000, 10) == 1);
    backlog_drop(&b);
}

TAP_MAIN
