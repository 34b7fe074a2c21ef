/* The relay between two connections: every byte, in order, both ways, and an end for each end. */
#include "guard/relay.h"
#include "guard_ends.h"

TAP_MAIN

#define MANY (6u * 1024 * 1024)

struct bed {
    uv_loop_t loop;
    struct guard *guard;
    struct relay *relay;
    int sandbox, server; /* what the test holds of the two connections */
    uint64_t up, down, limit;
    bool done;
    const char *error;
};

static void reset_end(int fd)
{
    struct linger hard = {.l_onoff = 1};

    setsockopt(fd, SOL_SOCKET, SO_LINGER, &hard, sizeof(hard));
    close(fd);
}

static bool on_count(void *arg, uint64_t up, uint64_t down)
{
    struct bed *t = arg;

    t->up += up;
    t->down += down;
    return !t->limit || t->up + t->down <= t->limit;
}

static void on_done(void *arg, const char *error)
{
    struct bed *t = arg;

    t->done = true;
    t->error = error;
}

static void bed_start(struct bed *t, uint64_t limit, const char *first, const char *first_back)
{
    int a[2], b[2];

    *t = (struct bed){.limit = limit};
    uv_loop_init(&t->loop);
    t->guard = xcalloc(1, sizeof(*t->guard));
    t->guard->loop = &t->loop;
    tcp_pair(a);
    tcp_pair(b);
    t->sandbox = a[0];
    t->server = b[0];
    t->relay =
        relay_new(&(struct relay_order){.guard = t->guard,
                                        .sandbox_fd = a[1],
                                        .server_fd = b[1],
                                        .first = first,
                                        .first_len = first ? strlen(first) : 0,
                                        .first_back = first_back,
                                        .first_back_len = first_back ? strlen(first_back) : 0,
                                        .count = on_count,
                                        .done = on_done,
                                        .arg = t});
}

static bool is_done(void *arg)
{
    return ((struct bed *)arg)->done;
}

static void bed_stop(struct bed *t)
{
    if (!t->done)
        relay_reset(t->relay, "over");
    close_p(&t->sandbox);
    close_p(&t->server);
    uv_run(&t->loop, UV_RUN_NOWAIT);
    EXPECT(uv_loop_close(&t->loop) == 0);
    free(t->guard);
}

/* One direction of a transfer: bytes that tell where they belong. */
struct transfer {
    int from, to;
    size_t sent, total, slice; /* slice: how much is read at a time; 0: all that is there */
    size_t got;
    bool wrong, ended, reading;
    int end;
};

static char byte_at(size_t i)
{
    return (char)(i * 31 + i / 65536 + i / 4096);
}

static void transfer_send(struct transfer *x)
{
    char buf[32768];

    while (x->sent < x->total) {
        size_t n = x->total - x->sent < sizeof(buf) ? x->total - x->sent : sizeof(buf);
        for (size_t i = 0; i < n; i++)
            buf[i] = byte_at(x->sent + i);
        ssize_t w = send(x->from, buf, n, MSG_NOSIGNAL);
        if (w < 0)
            return;
        x->sent += (size_t)w;
        if (x->sent == x->total)
            shutdown(x->from, SHUT_WR);
    }
}

static void transfer_take(struct transfer *x)
{
    char buf[65536];
    size_t len = 0, cap = x->slice ? x->slice : sizeof(buf);

    if (!x->reading || x->ended)
        return;
    int r = take_bytes(x->to, buf, cap, &len);
    for (size_t i = 0; i < len; i++)
        x->wrong |= buf[i] != byte_at(x->got + i);
    x->got += len;
    x->ended = r <= 0;
    x->end = r;
}

struct both {
    struct transfer *up, *down;
};

static bool both_ended(void *arg)
{
    struct both *b = arg;

    transfer_send(b->up);
    transfer_send(b->down);
    transfer_take(b->up);
    transfer_take(b->down);
    return (b->up->ended || !b->up->total) && (b->down->ended || !b->down->total);
}

TEST(bulk_goes_both_ways_at_once)
{
    struct bed t;

    bed_start(&t, 0, NULL, NULL);
    struct transfer up = {.from = t.sandbox, .to = t.server, .total = MANY, .reading = true};
    struct transfer down = {.from = t.server, .to = t.sandbox, .total = MANY + 7, .reading = true};
    EXPECT(turns_until(&t.loop, both_ended, &(struct both){&up, &down}));
    EXPECT(up.got == up.total && !up.wrong && up.end == 0);
    EXPECT(down.got == down.total && !down.wrong && down.end == 0);
    EXPECT(turns_until(&t.loop, is_done, &t));
    EXPECT(!t.error);
    EXPECT(t.up == up.total && t.down == down.total);
    bed_stop(&t);
}

TEST(a_side_that_does_not_read_stops_the_other)
{
    struct bed t;

    bed_start(&t, 0, NULL, NULL);
    struct transfer up = {.from = t.sandbox, .to = t.server};
    struct transfer down = {.from = t.server, .to = t.sandbox, .total = 16 * MANY};
    struct both b = {&up, &down};
    size_t before;
    do {
        before = down.sent;
        for (int i = 0; i < 200; i++) {
            uv_run(&t.loop, UV_RUN_NOWAIT);
            transfer_send(&down);
        }
    } while (down.sent > before);
    EXPECT(down.sent < down.total);
    EXPECT(is_quiet(&t.loop, 50));
    down.total = down.sent + 1; /* that is enough: one more and it has ended */
    down.reading = true;
    down.slice = 1000;
    EXPECT(turns_until(&t.loop, both_ended, &b));
    EXPECT(down.got == down.total && !down.wrong && down.end == 0);
    bed_stop(&t);
}

TEST(half_of_it_can_end_first)
{
    struct bed t;
    char c;

    bed_start(&t, 0, NULL, NULL);
    struct transfer up = {.from = t.sandbox, .to = t.server, .total = 5, .reading = true};
    struct transfer none = {0}, down = {0};
    EXPECT(turns_until(&t.loop, both_ended, &(struct both){&up, &none}));
    EXPECT(up.got == 5 && up.end == 0);
    EXPECT(!t.done && is_quiet(&t.loop, 20));
    EXPECT(recv(t.sandbox, &c, 1, 0) < 0 && errno == EAGAIN);
    down = (struct transfer){.from = t.server, .to = t.sandbox, .total = 300000, .reading = true};
    EXPECT(turns_until(&t.loop, both_ended, &(struct both){&none, &down}));
    EXPECT(down.got == down.total && !down.wrong && down.end == 0);
    EXPECT(turns_until(&t.loop, is_done, &t));
    EXPECT(!t.error);
    bed_stop(&t);
}

static bool has_end(void *arg)
{
    struct transfer *x = arg;

    transfer_take(x);
    return x->ended;
}

TEST(a_reset_is_passed_on)
{
    for (int i = 0; i < 2; i++) {
        struct bed t;

        bed_start(&t, 0, NULL, NULL);
        struct transfer x = {.to = i ? t.sandbox : t.server, .reading = true};
        reset_end(i ? t.server : t.sandbox);
        *(i ? &t.server : &t.sandbox) = -1;
        EXPECT(turns_until(&t.loop, has_end, &x));
        EXPECT(x.end == -ECONNRESET);
        EXPECT(t.done);
        bed_stop(&t);
    }
}

/* Whether pending bytes wait in a pipe or not. */
TEST(a_reader_that_goes_ends_it)
{
    struct bed t;

    bed_start(&t, 0, NULL, NULL);
    struct transfer up = {.from = t.sandbox, .to = t.server, .total = 64 * MANY};
    for (int i = 0; i < 300; i++) {
        transfer_send(&up);
        uv_run(&t.loop, UV_RUN_NOWAIT);
    }
    close(t.server);
    t.server = -1;
    EXPECT(turns_until(&t.loop, is_done, &t));
    bed_stop(&t);
}

TEST(what_was_read_before_comes_first)
{
    struct bed t;
    char up[64], down[64];
    size_t up_len = 0, down_len = 0;

    bed_start(&t, 0, "one ", "three ");
    EXPECT(send(t.sandbox, "two", 3, 0) == 3 && send(t.server, "four", 4, 0) == 4);
    for (int i = 0; i < 1000 && (up_len < 7 || down_len < 10); i++) {
        uv_run(&t.loop, UV_RUN_NOWAIT);
        take_bytes(t.server, up, sizeof(up), &up_len);
        take_bytes(t.sandbox, down, sizeof(down), &down_len);
    }
    EXPECT(up_len == 7 && memcmp(up, "one two", 7) == 0);
    EXPECT(down_len == 10 && memcmp(down, "three four", 10) == 0);
    EXPECT(t.up == 7 && t.down == 10);
    bed_stop(&t);
}

/* The kernel's splice stops before urgent data and calls that the end, once there is one. */
TEST(urgent_data_hides_nothing_behind_it)
{
    struct bed t;
    static char big[200000];
    static char got[2 * sizeof(big)];
    size_t len = 0;
    int r = 1;

    bed_start(&t, 0, NULL, NULL);
    memset(big, 'a', sizeof(big));
    EXPECT(send(t.sandbox, big, sizeof(big), 0) == sizeof(big));
    EXPECT(send(t.sandbox, "!", 1, MSG_OOB) == 1);
    memset(big, 'b', sizeof(big));
    EXPECT(send(t.sandbox, big, sizeof(big), 0) == sizeof(big));
    shutdown(t.sandbox, SHUT_WR);
    for (uint64_t until = clock_ns() + ENDS_NS; r == 1 && clock_ns() < until;) {
        uv_run(&t.loop, UV_RUN_NOWAIT);
        r = take_bytes(t.server, got, sizeof(got), &len);
    }
    EXPECT(len == sizeof(got) && got[0] == 'a' && got[sizeof(got) - 1] == 'b');
    EXPECT(is_quiet(&t.loop, 20));
    bed_stop(&t);
}

TEST(a_quota_cuts_it)
{
    struct bed t;

    bed_start(&t, 1000000, NULL, NULL);
    struct transfer up = {.from = t.sandbox, .to = t.server, .total = MANY, .reading = true};
    EXPECT(turns_until(&t.loop, both_ended, &(struct both){&up, &(struct transfer){0}}));
    EXPECT(up.end == -ECONNRESET && up.got <= 1000000 + 65536);
    EXPECT(t.done && strcmp(t.error, "quota of bytes") == 0);
    bed_stop(&t);
}
