/* Both ends of a channel in one process, over a socketpair. */
#include <poll.h>

#include "chan_log.h"
#include "tap.h"

struct pair {
    struct chan *host, *agent;
    struct chan_log h, a;
};

static void pair_open_with(struct pair *p, const struct chan_handlers *handlers)
{
    int fds[2];

    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) < 0)
        abort();
    chan_log_init(&p->h);
    chan_log_init(&p->a);
    p->host = chan_new(fds[0], CHAN_HOST, handlers, &p->h);
    p->agent = chan_new(fds[1], CHAN_AGENT, handlers, &p->a);
}

static void pair_open(struct pair *p)
{
    pair_open_with(p, &log_handlers);
}

static void pair_close(struct pair *p)
{
    chan_free(p->host);
    chan_free(p->agent);
    chan_log_done(&p->h);
    chan_log_done(&p->a);
}

/* Does what the owners' loops would do, until nothing more happens. */
static void settle(struct pair *p)
{
    for (unsigned i = 0; i < 10000; i++) {
        struct pollfd fds[2] = {{.fd = chan_fd(p->host)}, {.fd = chan_fd(p->agent)}};
        struct chan *ends[2] = {p->host, p->agent};

        for (unsigned j = 0; j < 2; j++)
            fds[j].events = (short)((chan_wants_read(ends[j]) ? POLLIN : 0) |
                                    (chan_wants_write(ends[j]) ? POLLOUT : 0));
        if (poll(fds, 2, 0) == 0)
            return;
        for (unsigned j = 0; j < 2; j++)
            if (fds[j].revents)
                EXPECT(chan_pump(ends[j]) == 0);
        if (tap_failures)
            return;
    }
    EXPECT(!"the ends never come to rest");
}

static char *pattern(size_t len)
{
    char *p = xcalloc(1, len);

    for (size_t i = 0; i < len; i++)
        p[i] = (char)(i * 31 + i / 251);
    return p;
}

/* Opens a stream and brings the agent to know it. */
static struct chan_stream *open_stream(struct pair *p, struct chan_stream **ret_agent)
{
    struct chan_stream *s = chan_open(p->host, OP_PROCESS_START, "x", 1, NULL);

    settle(p);
    *ret_agent = p->a.stream;
    return s;
}

/* Reads everything that waits on the descriptor, in one call. */
static ssize_t raw_read(int fd)
{
    static char sink[1u << 20];

    return recv(fd, sink, sizeof(sink), MSG_DONTWAIT);
}

TEST(open_and_end)
{
    struct pair p;
    int mine;

    pair_open(&p);
    struct chan_stream *s = chan_open(p.host, OP_FILE_STAT, "request", 7, &mine);
    EXPECT(chan_stream_owner(s) == &mine);
    EXPECT(chan_backlog(p.host) == 0); /* it has left already */
    settle(&p);
    EXPECT(p.a.opens == 1 && p.a.op == OP_FILE_STAT);
    EXPECT_STR(p.a.payload.buf, "request");
    EXPECT(chan_stream_owner(p.a.stream) == NULL);
    chan_stream_set_owner(p.a.stream, &p);
    EXPECT(chan_stream_owner(p.a.stream) == &p);

    chan_event(p.agent, p.a.stream, EVENT_STARTED, "\5\0\0\0", 4);
    chan_end(p.agent, p.a.stream, 0, NULL, "result", 6);
    settle(&p);
    EXPECT(p.h.events == 1 && p.h.what == EVENT_STARTED);
    EXPECT(p.h.ends == 1 && p.h.status == 0);
    EXPECT_STR(p.h.message, "");
    EXPECT_STR(p.h.payload.buf, "result");
    EXPECT(p.a.cancels == 0 && p.a.eofs == 0);
    pair_close(&p);
}

TEST(end_with_an_error)
{
    struct pair p;
    struct chan_stream *as;

    pair_open(&p);
    open_stream(&p, &as);
    chan_end(p.agent, as, ENOENT, "no file '/x': create it first", NULL, 0);
    settle(&p);
    EXPECT(p.h.ends == 1 && p.h.status == ENOENT && p.h.payload.len == 0);
    EXPECT_STR(p.h.message, "no file '/x': create it first");
    pair_close(&p);
}

TEST(empty_request_and_end_inside_the_handler)
{
    struct pair p;

    pair_open(&p);
    p.a.auto_end = true;
    for (unsigned i = 0; i < 100; i++)
        EXPECT(chan_open(p.host, OP_PING, NULL, 0, NULL));
    settle(&p);
    EXPECT(p.a.opens == 100 && p.h.ends == 100);
    pair_close(&p);
}

static void large_request(struct pair *p, size_t len)
{
    AUTO(free_p) char *req = pattern(len);
    unsigned before = p->h.ends;

    EXPECT(chan_open(p->host, OP_PROCESS_START, req, len, NULL));
    settle(p);
    EXPECT(p->a.payload.len == len && memcmp(p->a.payload.buf, req, len) == 0);
    EXPECT(p->h.ends == before + 1 && p->h.status == 0);
    EXPECT(p->h.payload.len == 1000 && memcmp(p->h.payload.buf, req, 1000) == 0);
    EXPECT(chan_backlog(p->host) == 0);
}

TEST(large_requests_are_put_together)
{
    struct pair p;

    pair_open(&p);
    p.a.auto_end = true;
    large_request(&p, FRAME_PAYLOAD_MAX - 4); /* the most that one frame holds */
    large_request(&p, FRAME_PAYLOAD_MAX - 3);
    for (unsigned i = 0; i < 4; i++) /* each gives back what it took of CHAN_ASSEMBLY_MAX */
        large_request(&p, OPS_OPEN_MAX);
    EXPECT(p.a.opens == 6);
    pair_close(&p);
}

TEST(request_over_the_limit_is_refused)
{
    struct pair p;
    AUTO(free_p) char *req = pattern(OPS_OPEN_MAX + 1);

    pair_open(&p);
    EXPECT(!chan_open(p.host, OP_PROCESS_START, req, OPS_OPEN_MAX + 1, NULL));
    EXPECT(chan_backlog(p.host) == 0);
    pair_close(&p);
}

TEST(data_eof_control_cancel_reach_the_agent)
{
    struct pair p;
    struct chan_stream *as;

    pair_open(&p);
    struct chan_stream *s = open_stream(&p, &as);
    chan_send(p.host, s, CHAN_STDIN, "abc", 3);
    chan_control(p.host, s, CONTROL_RESIZE, "\1\0\0\0\2\0\0\0", 8);
    chan_eof(p.host, s);
    chan_eof(p.host, s);
    chan_cancel(p.host, s);
    chan_cancel(p.host, s);
    EXPECT(chan_credit(s) == 0); /* after EOF there is nothing to send */
    settle(&p);
    EXPECT_STR(p.a.data.buf, "abc");
    EXPECT(p.a.sub == CHAN_STDIN && p.a.controls == 1 && p.a.what == CONTROL_RESIZE);
    EXPECT(p.a.eofs == 1 && p.a.cancels == 1);

    /* The agent's direction stays open until it says END. */
    chan_send(p.agent, as, CHAN_STDERR, "err", 3);
    chan_end(p.agent, as, ECANCELED, "cancelled", NULL, 0);
    settle(&p);
    EXPECT_STR(p.h.data.buf, "err");
    EXPECT(p.h.sub == CHAN_STDERR && p.h.ends == 1 && p.h.status == ECANCELED);
    pair_close(&p);
}

TEST(sender_stops_at_the_window_and_resumes_by_credit)
{
    struct pair p;
    struct chan_stream *as;
    AUTO(free_p) char *bytes = pattern(CHAN_WINDOW);

    pair_open(&p);
    struct chan_stream *s = open_stream(&p, &as);
    EXPECT(chan_credit(as) == CHAN_WINDOW);
    chan_send(p.agent, as, CHAN_STDOUT, bytes, CHAN_WINDOW);
    settle(&p);
    EXPECT(p.h.data.len == CHAN_WINDOW && memcmp(p.h.data.buf, bytes, CHAN_WINDOW) == 0);
    EXPECT(chan_credit(as) == 0);

    /* Small pieces are not worth a frame. */
    chan_consumed(p.host, s, CHAN_WINDOW / 4 - 1);
    settle(&p);
    EXPECT(chan_credit(as) == 0 && p.a.credits == 0);
    chan_consumed(p.host, s, 1);
    settle(&p);
    EXPECT(chan_credit(as) == CHAN_WINDOW / 4 && p.a.credits == 1);
    chan_consumed(p.host, s, CHAN_WINDOW / 4 * 3);
    settle(&p);
    EXPECT(chan_credit(as) == CHAN_WINDOW);
    EXPECT(p.a.credits == 1); /* it was not 0 in between */
    EXPECT(chan_credit(s) == CHAN_WINDOW);
    pair_close(&p);
}

/* What is sent in one piece waits for as much credit as that takes. */
TEST(credit_below_the_mark_is_none)
{
    struct pair p;
    struct chan_stream *as;
    AUTO(free_p) char *bytes = pattern(CHAN_WINDOW);

    pair_open(&p);
    struct chan_stream *s = open_stream(&p, &as);
    chan_set_mark(as, CHAN_WINDOW / 2);
    chan_send(p.agent, as, CHAN_STDOUT, bytes, CHAN_WINDOW / 4 * 3);
    settle(&p);
    EXPECT(chan_credit(as) == CHAN_WINDOW / 4);
    chan_consumed(p.host, s, CHAN_WINDOW / 4);
    settle(&p);
    EXPECT(chan_credit(as) == CHAN_WINDOW / 2 && p.a.credits == 1);
    chan_consumed(p.host, s, CHAN_WINDOW / 4);
    settle(&p);
    EXPECT(p.a.credits == 1);

    chan_send(p.agent, as, CHAN_STDOUT, bytes, CHAN_WINDOW / 4 * 3);
    settle(&p);
    EXPECT(chan_credit(as) == 0);
    chan_consumed(p.host, s, CHAN_WINDOW / 4);
    settle(&p);
    EXPECT(chan_credit(as) == CHAN_WINDOW / 4 && p.a.credits == 1); /* not yet */
    chan_consumed(p.host, s, CHAN_WINDOW / 4);
    settle(&p);
    EXPECT(p.a.credits == 2);
    pair_close(&p);
}

TEST(many_windows_flow_in_both_directions)
{
    struct pair p;
    struct chan_stream *as;
    const size_t total = 20 * CHAN_WINDOW + 12345;
    AUTO(free_p) char *bytes = pattern(total);
    size_t up = 0, down = 0;

    pair_open(&p);
    p.a.auto_consume = p.h.auto_consume = true;
    struct chan_stream *s = open_stream(&p, &as);
    for (unsigned i = 0; i < 1000 && (up < total || down < total); i++) {
        size_t n = chan_credit(s) < total - up ? chan_credit(s) : total - up;
        chan_send(p.host, s, CHAN_STDIN, bytes + up, n);
        up += n;
        n = chan_credit(as) < total - down ? chan_credit(as) : total - down;
        chan_send(p.agent, as, CHAN_STDOUT, bytes + down, n);
        down += n;
        EXPECT(chan_backlog(p.host) <= CHAN_WINDOW + 4096);
        settle(&p);
    }
    EXPECT(p.a.data.len == total && memcmp(p.a.data.buf, bytes, total) == 0);
    EXPECT(p.h.data.len == total && memcmp(p.h.data.buf, bytes, total) == 0);
    pair_close(&p);
}

TEST(streams_interleave_and_do_not_share_credit)
{
    struct pair p;
    struct chan_stream *a1, *a2;
    AUTO(free_p) char *bytes = pattern(CHAN_WINDOW);

    pair_open(&p);
    struct chan_stream *s1 = open_stream(&p, &a1), *s2 = open_stream(&p, &a2);
    EXPECT(a1 != a2);
    chan_send(p.agent, a1, CHAN_STDOUT, bytes, CHAN_WINDOW);
    settle(&p);
    EXPECT(p.h.stream == s1 && chan_credit(a1) == 0 && chan_credit(a2) == CHAN_WINDOW);
    chan_send(p.agent, a2, CHAN_STDOUT, "second", 6); /* though the first is full */
    settle(&p);
    EXPECT(p.h.stream == s2 && p.h.data.len == CHAN_WINDOW + 6);
    chan_end(p.agent, a1, 0, NULL, NULL, 0);
    settle(&p);
    chan_send(p.host, s2, CHAN_STDIN, "still", 5);
    settle(&p);
    EXPECT(p.a.stream == a2);
    EXPECT_STR(p.a.data.buf, "still");
    pair_close(&p);
}

TEST(cancel_and_data_may_cross_the_end)
{
    struct pair p;
    struct chan_stream *as;

    pair_open(&p);
    struct chan_stream *s = open_stream(&p, &as);
    chan_end(p.agent, as, 0, NULL, NULL, 0);
    chan_send(p.host, s, CHAN_STDIN, "late", 4);
    chan_control(p.host, s, CONTROL_SIGNAL, "\17\0\0\0", 4);
    chan_eof(p.host, s);
    chan_cancel(p.host, s);
    settle(&p);
    EXPECT(p.h.ends == 1 && p.h.status == 0);
    EXPECT(p.a.cancels == 0 && p.a.eofs == 0 && p.a.controls == 0 && p.a.data.len == 0);
    pair_close(&p);
}

TEST(number_of_streams_is_bounded_and_places_come_back)
{
    struct pair p;
    struct chan_stream *last = NULL;

    pair_open(&p);
    for (unsigned i = 0; i < CHAN_STREAMS_MAX; i++) {
        last = chan_open(p.host, OP_FILE_WATCH, "x", 1, NULL);
        EXPECT(last);
    }
    EXPECT(!chan_open(p.host, OP_FILE_WATCH, "x", 1, NULL));
    settle(&p);
    EXPECT(p.a.opens == CHAN_STREAMS_MAX);
    chan_end(p.agent, p.a.stream, 0, NULL, NULL, 0);
    settle(&p);
    EXPECT(p.h.ends == 1);
    EXPECT(chan_open(p.host, OP_FILE_WATCH, "x", 1, NULL));
    settle(&p);
    EXPECT(p.a.opens == CHAN_STREAMS_MAX + 1);
    pair_close(&p);
}

TEST(corked_frames_leave_in_one_write)
{
    struct pair p;

    pair_open(&p);
    chan_cork(p.host);
    chan_cork(p.host);
    struct chan_stream *s = chan_open(p.host, OP_FILE_WRITE, "path", 4, NULL);
    chan_send(p.host, s, CHAN_STDIN, "code", 4);
    chan_eof(p.host, s);
    chan_uncork(p.host);
    chan_open(p.host, OP_PROCESS_START, "argv", 4, NULL);
    EXPECT(chan_flush(p.host) == 0);
    EXPECT(raw_read(chan_fd(p.agent)) < 0 && errno == EAGAIN);
    EXPECT(!chan_wants_write(p.host));
    size_t queued = chan_backlog(p.host);
    EXPECT(queued == 4 * FRAME_HEADER + 2 * (4 + 4) + 4);
    chan_uncork(p.host);
    EXPECT(chan_backlog(p.host) == 0);
    EXPECT(raw_read(chan_fd(p.agent)) == (ssize_t)queued);
    pair_close(&p);
}

TEST(what_was_sent_before_a_close_still_arrives)
{
    struct pair p;
    struct chan_stream *as;

    pair_open(&p);
    struct chan_stream *s = open_stream(&p, &as);
    chan_send(p.host, s, CHAN_STDIN, "never read", 10); /* makes the close a reset */
    chan_end(p.agent, as, 0, NULL, "done", 4);
    chan_free(p.agent);
    p.agent = NULL;
    chan_open(p.host, OP_PING, NULL, 0, NULL); /* meets a closed end; no SIGPIPE */
    EXPECT(chan_flush(p.host) == 0);
    int r = 0;
    for (unsigned i = 0; i < 3 && r == 0; i++)
        r = chan_pump(p.host);
    EXPECT(r == -EPIPE);
    EXPECT(p.h.ends == 1);
    EXPECT_STR(p.h.payload.buf, "done");
    EXPECT(chan_pump(p.host) == -EPIPE);
    pair_close(&p);
}

TEST(agent_notices_the_close)
{
    struct pair p;

    pair_open(&p);
    chan_free(p.host);
    p.host = NULL;
    EXPECT(chan_pump(p.agent) == -EPIPE);
    pair_close(&p);
}

/* An agent that keeps its socket full: what the host owes it may not grow without bound. */
TEST(a_peer_that_does_not_read_chokes_the_sender)
{
    struct pair p;
    struct chan_stream *s[16];
    AUTO(free_p) char *bytes = pattern(CHAN_WINDOW);
    size_t sent = 0;

    pair_open(&p);
    p.a.auto_consume = true;
    for (size_t i = 0; i < ARRAY_SIZE(s); i++)
        s[i] = chan_open(p.host, OP_PROCESS_START, "x", 1, NULL);
    for (size_t i = 0; i < ARRAY_SIZE(s); i++) {
        size_t n = chan_credit(s[i]);
        chan_send(p.host, s[i], CHAN_STDIN, bytes, n);
        sent += n;
    }
    EXPECT(sent >= CHAN_BACKLOG_HIGH && sent < ARRAY_SIZE(s) * CHAN_WINDOW);
    EXPECT(chan_backlog(p.host) < CHAN_BACKLOG_HIGH + CHAN_WINDOW + 1024);
    EXPECT(chan_credit(s[15]) == 0);
    EXPECT(chan_pump(p.host) == 0 && p.h.credits == 0);

    settle(&p); /* the agent reads at last */
    EXPECT(p.a.data.len == sent && chan_backlog(p.host) == 0);
    EXPECT(p.h.credits >= ARRAY_SIZE(s));
    EXPECT(chan_credit(s[15]) == CHAN_WINDOW);
    EXPECT(chan_open(p.host, OP_PING, NULL, 0, NULL));
    pair_close(&p);
}

TEST(uploads_do_not_keep_operations_out_but_a_full_queue_does)
{
    struct pair p;
    AUTO(free_p) char *bytes = pattern(CHAN_WINDOW);
    AUTO(free_p) char *request = pattern(256 * 1024);
    unsigned opened = 0;

    pair_open(&p);
    while (chan_backlog(p.host) < CHAN_BACKLOG_HIGH) {
        struct chan_stream *s = chan_open(p.host, OP_FILE_WRITE, "x", 1, NULL);
        chan_send(p.host, s, 0, bytes, chan_credit(s));
    }
    EXPECT(chan_open(p.host, OP_PING, NULL, 0, NULL));
    while (opened < 100 && chan_open(p.host, OP_PROCESS_START, request, 256 * 1024, NULL))
        opened++;
    EXPECT(opened > 0 && opened < 100);
    EXPECT(chan_backlog(p.host) <= CHAN_BACKLOG_MAX / 2 + 4096);
    EXPECT(chan_pump(p.host) == 0); /* and the channel is alive */
    pair_close(&p);
}

TEST(a_queue_drained_outside_the_pump_is_announced_by_the_next)
{
    struct pair p;
    struct chan_stream *as;
    static char event[FRAME_PAYLOAD_MAX - 64];

    pair_open(&p);
    open_stream(&p, &as);
    while (chan_backlog(p.agent) < CHAN_BACKLOG_HIGH)
        chan_event(p.agent, as, EVENT_ENTRY, event, sizeof(event));
    while (chan_backlog(p.agent) > 0 && raw_read(chan_fd(p.host)) > 0)
        EXPECT(chan_flush(p.agent) == 0);
    EXPECT(chan_backlog(p.agent) == 0);
    EXPECT(chan_wants_write(p.agent)); /* or its owner would never pump again */
    EXPECT(chan_pump(p.agent) == 0);
    EXPECT(p.a.credits == 1 && chan_credit(as) == CHAN_WINDOW && !chan_wants_write(p.agent));
    pair_close(&p);
}

TEST(a_choked_agent_takes_no_requests_until_it_is_read)
{
    struct pair p;
    static char event[FRAME_PAYLOAD_MAX - 64];
    struct chan_stream *as;

    pair_open(&p);
    open_stream(&p, &as);
    while (chan_backlog(p.agent) < CHAN_BACKLOG_HIGH)
        chan_event(p.agent, as, EVENT_ENTRY, event, sizeof(event));
    EXPECT(!chan_wants_read(p.agent) && chan_wants_write(p.agent));
    for (unsigned i = 0; i < 50; i++)
        chan_open(p.host, OP_PING, NULL, 0, NULL);
    EXPECT(chan_pump(p.agent) == 0);
    EXPECT(p.a.opens == 1);
    settle(&p);
    EXPECT(p.a.opens == 51);
    EXPECT(chan_wants_read(p.agent) && !chan_wants_write(p.agent));
    pair_close(&p);
}

TEST(a_choked_agent_still_notices_the_close)
{
    struct pair p;
    static char event[FRAME_PAYLOAD_MAX - 64];
    struct chan_stream *as;

    pair_open(&p);
    open_stream(&p, &as);
    while (chan_backlog(p.agent) < CHAN_BACKLOG_HIGH)
        chan_event(p.agent, as, EVENT_ENTRY, event, sizeof(event));
    chan_free(p.host);
    p.host = NULL;
    EXPECT(chan_pump(p.agent) == -EPIPE);
    pair_close(&p);
}

TEST(a_queue_over_the_hard_limit_ends_the_channel)
{
    struct pair p;
    static char event[FRAME_PAYLOAD_MAX - 64];
    struct chan_stream *as;

    pair_open(&p);
    open_stream(&p, &as);
    for (unsigned i = 0; i < 2 * CHAN_BACKLOG_MAX / sizeof(event); i++)
        chan_event(p.agent, as, EVENT_ENTRY, event, sizeof(event));
    EXPECT(chan_backlog(p.agent) == 0); /* given back */
    EXPECT(chan_pump(p.agent) == -ENOBUFS);
    pair_close(&p);
}

static void end_on_credit(struct chan *c, struct chan_stream *s)
{
    log_credit(c, s);
    chan_end(c, s, 0, NULL, NULL, 0);
}

static void reopen_on_end(struct chan *c, struct chan_stream *s, int status, const char *message,
                          const void *result, size_t len)
{
    log_end(c, s, status, message, result, len);
    if (((struct chan_log *)chan_arg(c))->ends == 1)
        EXPECT(chan_open(c, OP_PING, NULL, 0, NULL));
}

TEST(handlers_may_end_and_open_streams)
{
    struct chan_handlers handlers = log_handlers;
    static char event[FRAME_PAYLOAD_MAX - 64];
    struct pair p;

    handlers.on_credit = end_on_credit;
    handlers.on_end = reopen_on_end;
    pair_open_with(&p, &handlers);
    for (unsigned i = 0; i < 10; i++)
        chan_open(p.host, OP_FILE_WATCH, "x", 1, NULL);
    settle(&p);
    while (chan_backlog(p.agent) < CHAN_BACKLOG_HIGH)
        chan_event(p.agent, p.a.stream, EVENT_ENTRY, event, sizeof(event));
    settle(&p); /* the queue drains, every stream hears of it and ends itself */
    EXPECT(p.a.credits == 10 && p.h.ends == 10);
    EXPECT(p.a.opens == 11);
    pair_close(&p);
}

TAP_MAIN
