/* One end of a channel against a peer that writes whatever bytes it likes. */
#include <dirent.h>
#include <fcntl.h>

#include "lib/ipc/ipc.h"
#include "chan_log.h"
#include "lib/channel/wire.h"
#include "tap.h"

struct bed {
    struct chan *c;
    int peer;
    struct chan_log log;
};

static void bed_open(struct bed *b, enum chan_side side)
{
    int fds[2];

    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) < 0)
        abort();
    chan_log_init(&b->log);
    b->c = chan_new(fds[0], side, &log_handlers, &b->log);
    b->peer = fds[1];
}

static void bed_close(struct bed *b)
{
    chan_free(b->c);
    close(b->peer);
    chan_log_done(&b->log);
}

static void write_raw(struct bed *b, const void *p, size_t len)
{
    EXPECT(send(b->peer, p, len, MSG_DONTWAIT | MSG_NOSIGNAL) == (ssize_t)len);
}

/* One frame, valid or not, and the end's verdict. */
static int frame(struct bed *b, uint32_t stream, uint8_t type, uint8_t sub, const void *p,
                 size_t len)
{
    AUTO(strbuf_done) struct strbuf s = {0};

    strbuf_init(&s, 1u << 20);
    wire_put_u32(&s, (uint32_t)len);
    wire_put_u32(&s, stream);
    wire_put_u8(&s, type);
    wire_put_u8(&s, sub);
    strbuf_add(&s, "\0\0", 2);
    strbuf_add(&s, p, len);
    write_raw(b, s.buf, s.len);
    return chan_pump(b->c);
}

static int frame_u32(struct bed *b, uint32_t stream, uint8_t type, uint32_t v)
{
    uint8_t p[4] = {(uint8_t)v, (uint8_t)(v >> 8), (uint8_t)(v >> 16), (uint8_t)(v >> 24)};

    return frame(b, stream, type, type == FRAME_OPEN ? OP_PING : 0, p, sizeof(p));
}

/* The next frame that the end sent. */
static struct frame answer(struct bed *b)
{
    static uint8_t buf[FRAME_HEADER + FRAME_PAYLOAD_MAX];
    struct frame f = {0};

    if (recv(b->peer, buf, FRAME_HEADER, MSG_DONTWAIT) == FRAME_HEADER) {
        size_t len = (size_t)buf[0] | (size_t)buf[1] << 8;
        EXPECT(recv(b->peer, buf + FRAME_HEADER, len, MSG_DONTWAIT) == (ssize_t)len);
        EXPECT(frame_decode(buf, FRAME_HEADER + len, &f) > 0);
    }
    return f;
}

static void expect_end(struct bed *b, uint32_t stream, uint32_t status)
{
    struct frame f = answer(b);
    struct wire_reader r;

    EXPECT(f.type == FRAME_END && f.stream == stream);
    wire_reader_init(&r, f.payload, f.len);
    EXPECT(wire_get_u32(&r) == status);
    EXPECT(strlen(wire_get_str(&r, 200)) > 10);
    EXPECT(wire_done(&r));
}

/* An agent that has stream 5 open, and one frame more. */
static int agent_after_open(uint32_t stream, uint8_t type, uint8_t sub, const void *p, size_t len)
{
    struct bed b;

    bed_open(&b, CHAN_AGENT);
    EXPECT(frame_u32(&b, 5, FRAME_OPEN, 0) == 0);
    EXPECT(b.log.opens == 1);
    int r = frame(&b, stream, type, sub, p, len);
    EXPECT(r == 0 || chan_pump(b.c) == r); /* once dead, always dead */
    bed_close(&b);
    return r;
}

/* A host that has streams 1 and 2 open, and one frame more. */
static int host_after_open(uint32_t stream, uint8_t type, uint8_t sub, const void *p, size_t len)
{
    struct bed b;

    bed_open(&b, CHAN_HOST);
    chan_open(b.c, OP_PROCESS_START, NULL, 0, NULL);
    chan_open(b.c, OP_PROCESS_START, NULL, 0, NULL);
    int r = frame(&b, stream, type, sub, p, len);
    EXPECT(r == 0 || chan_pump(b.c) == r);
    bed_close(&b);
    return r;
}

TEST(agent_refuses_frames_out_of_place)
{
    EXPECT(agent_after_open(5, FRAME_DATA, 0, "x", 1) == 0);
    EXPECT(agent_after_open(6, FRAME_DATA, 0, "x", 1) == -EPROTO); /* never opened */
    EXPECT(agent_after_open(4, FRAME_DATA, 0, "x", 1) == 0);       /* may have been, and gone */
    EXPECT(agent_after_open(5, FRAME_EVENT, EVENT_STARTED, "", 0) == -EPROTO);
    EXPECT(agent_after_open(5, FRAME_END, 0, "\0\0\0\0\0\0\0\0", 9) == -EPROTO);
    EXPECT(agent_after_open(5, FRAME_CONTROL, CONTROL_CONTINUE, "x", 1) == -EPROTO);
    EXPECT(agent_after_open(0, FRAME_EOF, 0, "", 0) == -EPROTO);
    EXPECT(agent_after_open(5, 99, 0, "", 0) == -EPROTO);
    EXPECT(agent_after_open(6, FRAME_OPEN, 200, "\0\0\0\0", 4) == 0); /* the handler's to refuse */
}

TEST(agent_wants_rising_stream_ids)
{
    EXPECT(agent_after_open(0, FRAME_OPEN, OP_PING, "\0\0\0\0", 4) == -EPROTO);
    EXPECT(agent_after_open(5, FRAME_OPEN, OP_PING, "\0\0\0\0", 4) == -EPROTO);
    EXPECT(agent_after_open(4, FRAME_OPEN, OP_PING, "\0\0\0\0", 4) == -EPROTO);
    EXPECT(agent_after_open(6, FRAME_OPEN, OP_PING, "\0\0\0\0", 4) == 0);
    EXPECT(agent_after_open(UINT32_MAX, FRAME_OPEN, OP_PING, "\0\0\0\0", 4) == 0);
}

TEST(agent_refuses_data_and_eof_after_eof)
{
    struct bed b;

    for (unsigned i = 0; i < 2; i++) {
        bed_open(&b, CHAN_AGENT);
        EXPECT(frame_u32(&b, 1, FRAME_OPEN, 0) == 0);
        EXPECT(frame(&b, 1, FRAME_EOF, 0, "", 0) == 0);
        EXPECT(b.log.eofs == 1);
        EXPECT((i == 0 ? frame(&b, 1, FRAME_EOF, 0, "", 0) : frame(&b, 1, FRAME_DATA, 0, "x", 1)) ==
               -EPROTO);
        EXPECT(b.log.eofs == 1 && b.log.data.len == 0);
        bed_close(&b);
    }
}

TEST(agent_refuses_a_request_longer_than_announced)
{
    struct bed b;

    EXPECT(agent_after_open(6, FRAME_OPEN, OP_PING, "\1\0\0\0xy", 6) == -EPROTO);
    bed_open(&b, CHAN_AGENT);
    EXPECT(frame(&b, 1, FRAME_OPEN, OP_PING, "\4\0\0\0ab", 6) == 0);
    EXPECT(frame(&b, 1, FRAME_CONTROL, CONTROL_CONTINUE, "c", 1) == 0);
    EXPECT(b.log.opens == 0);
    EXPECT(frame(&b, 1, FRAME_CONTROL, CONTROL_CONTINUE, "de", 2) == -EPROTO);
    EXPECT(b.log.opens == 0);
    bed_close(&b);
}

/* A stream whose request is not whole takes nothing else; no handler knows it. */
TEST(agent_guards_a_request_under_assembly)
{
    static const struct {
        uint8_t type, sub;
        int want;
    } cases[] = {
        {FRAME_DATA, 0, -EPROTO}, {FRAME_EOF, 0, -EPROTO}, {FRAME_CONTROL, CONTROL_SIGNAL, -EPROTO},
        {FRAME_CREDIT, 0, 0},     {FRAME_CANCEL, 0, 0},
    };

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct bed b;
        bool empty = cases[i].type == FRAME_EOF || cases[i].type == FRAME_CANCEL;

        bed_open(&b, CHAN_AGENT);
        EXPECT(frame(&b, 1, FRAME_OPEN, OP_PING, "\4\0\0\0ab", 6) == 0);
        EXPECT(frame(&b, 1, cases[i].type, cases[i].sub, "\1\0\0\0", empty ? 0 : 4) ==
               cases[i].want);
        EXPECT(b.log.cancels + b.log.credits + b.log.eofs + b.log.controls == 0);
        if (cases[i].type == FRAME_CANCEL)
            expect_end(&b, 1, ECANCELED);
        bed_close(&b);
    }
}

TEST(agent_answers_requests_that_are_too_long)
{
    struct bed b;

    bed_open(&b, CHAN_AGENT);
    EXPECT(frame_u32(&b, 1, FRAME_OPEN, OPS_OPEN_MAX + 1) == 0);
    expect_end(&b, 1, E2BIG);
    EXPECT(frame(&b, 1, FRAME_CONTROL, CONTROL_CONTINUE, "x", 1) == 0); /* gone: ignored */
    EXPECT(frame_u32(&b, 2, FRAME_OPEN, UINT32_MAX) == 0);
    expect_end(&b, 2, E2BIG);

    /* Two of the largest fit together, then not even a small one that is not whole. */
    EXPECT(frame_u32(&b, 3, FRAME_OPEN, OPS_OPEN_MAX) == 0);
    EXPECT(frame_u32(&b, 4, FRAME_OPEN, OPS_OPEN_MAX) == 0);
    EXPECT(frame_u32(&b, 5, FRAME_OPEN, 1) == 0);
    expect_end(&b, 5, E2BIG);
    EXPECT(frame_u32(&b, 6, FRAME_OPEN, 0) == 0);
    EXPECT(b.log.opens == 1);
    EXPECT(frame(&b, 3, FRAME_CANCEL, 0, "", 0) == 0); /* gives its share back */
    expect_end(&b, 3, ECANCELED);
    EXPECT(frame_u32(&b, 7, FRAME_OPEN, 1) == 0);
    EXPECT(frame(&b, 7, FRAME_CONTROL, CONTROL_CONTINUE, "x", 1) == 0);
    EXPECT(b.log.opens == 2);
    bed_close(&b);
}

TEST(agent_answers_when_too_many_streams_are_open)
{
    struct bed b;

    bed_open(&b, CHAN_AGENT);
    for (uint32_t id = 1; id <= CHAN_STREAMS_MAX; id++)
        EXPECT(frame_u32(&b, id, FRAME_OPEN, 0) == 0);
    EXPECT(frame_u32(&b, 5000, FRAME_OPEN, 0) == 0);
    expect_end(&b, 5000, EAGAIN);
    EXPECT(b.log.opens == CHAN_STREAMS_MAX);
    EXPECT(frame(&b, 5000, FRAME_DATA, 0, "x", 1) == 0);
    EXPECT(frame_u32(&b, 5000, FRAME_OPEN, 0) == -EPROTO); /* the id is used up */
    bed_close(&b);
}

TEST(host_refuses_frames_out_of_place)
{
    EXPECT(host_after_open(1, FRAME_EVENT, EVENT_STARTED, "\1\0\0\0", 4) == 0);
    EXPECT(host_after_open(3, FRAME_EVENT, EVENT_STARTED, "\1\0\0\0", 4) == -EPROTO);
    EXPECT(host_after_open(3, FRAME_OPEN, OP_PING, "\0\0\0\0", 4) == -EPROTO);
    EXPECT(host_after_open(1, FRAME_EOF, 0, "", 0) == -EPROTO);
    EXPECT(host_after_open(1, FRAME_CANCEL, 0, "", 0) == -EPROTO);
    EXPECT(host_after_open(1, FRAME_CONTROL, CONTROL_SIGNAL, "", 0) == -EPROTO);
}

TEST(host_refuses_malformed_ends)
{
    EXPECT(host_after_open(1, FRAME_END, 0, "\0\0\0\0\0\0\0\0\0", 9) == 0);
    EXPECT(host_after_open(1, FRAME_END, 0, "\2\0\0\0\1\0\0\0x\0", 10) == 0);
    EXPECT(host_after_open(1, FRAME_END, 0, "\2\0\0\0\1\0\0\0xy", 10) == -EPROTO);
    EXPECT(host_after_open(1, FRAME_END, 0, "\2\0\0\0\xff\xff\xff\xffx", 9) == -EPROTO);
    EXPECT(host_after_open(1, FRAME_END, 0, "\0\0\0\0\1\0\0\0x\0", 10) == -EPROTO);
    EXPECT(host_after_open(1, FRAME_END, 0, "\0\0\1\0\0\0\0\0\0", 9) == -EPROTO); /* no errno */
}

TEST(second_end_is_ignored)
{
    struct bed b;

    bed_open(&b, CHAN_HOST);
    chan_open(b.c, OP_PING, NULL, 0, NULL);
    EXPECT(frame(&b, 1, FRAME_END, 0, "\0\0\0\0\0\0\0\0\0", 9) == 0);
    EXPECT(frame(&b, 1, FRAME_END, 0, "\0\0\0\0\0\0\0\0\0", 9) == 0);
    EXPECT(b.log.ends == 1);
    bed_close(&b);
}

static void credit_exceeded(enum chan_side side)
{
    static char bytes[FRAME_PAYLOAD_MAX];
    struct bed b;

    bed_open(&b, side);
    if (side == CHAN_HOST)
        chan_open(b.c, OP_PROCESS_START, NULL, 0, NULL);
    else
        EXPECT(frame_u32(&b, 1, FRAME_OPEN, 0) == 0);
    for (unsigned i = 0; i < CHAN_WINDOW / FRAME_PAYLOAD_MAX; i++)
        EXPECT(frame(&b, 1, FRAME_DATA, 0, bytes, sizeof(bytes)) == 0);
    EXPECT(b.log.data.len == CHAN_WINDOW);
    EXPECT(frame(&b, 1, FRAME_DATA, 0, bytes, 1) == -EPROTO);
    EXPECT(b.log.data.len == CHAN_WINDOW);
    bed_close(&b);
}

TEST(sending_beyond_the_credit_ends_the_channel)
{
    credit_exceeded(CHAN_HOST);
    credit_exceeded(CHAN_AGENT);
}

TEST(absurd_credit_ends_the_channel)
{
    struct bed b;

    EXPECT(host_after_open(1, FRAME_CREDIT, 0, "\0\0\0\0", 4) == -EPROTO);
    EXPECT(host_after_open(1, FRAME_CREDIT, 0, "\xff\xff\xff\xff", 4) == -EPROTO);
    bed_open(&b, CHAN_HOST);
    struct chan_stream *s = chan_open(b.c, OP_PROCESS_START, NULL, 0, NULL);
    EXPECT(frame_u32(&b, 1, FRAME_CREDIT, CHAN_CREDIT_MAX - CHAN_WINDOW) == 0);
    EXPECT(chan_credit(s) == CHAN_WINDOW); /* generosity does not make us queue more */
    EXPECT(frame_u32(&b, 1, FRAME_CREDIT, 1) == -EPROTO);
    bed_close(&b);
}

TEST(frames_arrive_byte_by_byte)
{
    char bytes[] = "\5\0\0\0\1\0\0\0\1?\0\0"
                   "\1\0\0\0x"
                   "\3\0\0\0\1\0\0\0\2\0\0\0"
                   "abc";
    struct bed b;

    bytes[9] = OP_PING;
    bed_open(&b, CHAN_AGENT);
    for (size_t i = 0; i < sizeof(bytes) - 1; i++) {
        write_raw(&b, bytes + i, 1);
        EXPECT(chan_pump(b.c) == 0);
    }
    EXPECT(b.log.opens == 1 && b.log.op == OP_PING);
    EXPECT_STR(b.log.data.buf, "abc");
    bed_close(&b);
}

TEST(a_close_in_the_middle_of_a_frame_is_a_close)
{
    struct bed b;

    bed_open(&b, CHAN_AGENT);
    write_raw(&b, "\5\0\0\0\1", 5);
    shutdown(b.peer, SHUT_WR);
    EXPECT(chan_pump(b.c) == 0);
    EXPECT(chan_pump(b.c) == -EPIPE);
    bed_close(&b);
}

static unsigned open_fds(void)
{
    DIR *d = opendir("/proc/self/fd");
    unsigned n = 0;

    while (d && readdir(d))
        n++;
    closedir(d);
    return n;
}

TEST(passed_descriptors_never_arrive)
{
    struct bed b;
    int fds[IPC_FDS_MAX];

    bed_open(&b, CHAN_HOST);
    chan_open(b.c, OP_PROCESS_START, NULL, 0, NULL);
    for (size_t i = 0; i < ARRAY_SIZE(fds); i++)
        fds[i] = b.peer;
    unsigned before = open_fds();
    EXPECT(ipc_send(b.peer, "\1\0\0\0\1\0\0\0\2\1\0\0x", 13, fds, ARRAY_SIZE(fds)) == 0);
    EXPECT(chan_pump(b.c) == 0);
    EXPECT_STR(b.log.data.buf, "x");
    EXPECT(open_fds() == before);
    bed_close(&b);
}

static unsigned refills;

/* The peer is as fast as the end: for every frame taken, another one is there. */
static void refill(struct chan *c, struct chan_stream *s, uint8_t sub, const void *p, size_t len)
{
    struct bed *b = CONTAINER_OF(chan_arg(c), struct bed, log);
    static uint8_t frame_bytes[FRAME_HEADER + FRAME_PAYLOAD_MAX];
    struct frame f = {.stream = 1, .type = FRAME_DATA, .len = FRAME_PAYLOAD_MAX};

    (void)sub;
    (void)p;
    frame_encode_header(frame_bytes, &f);
    chan_consumed(c, s, len);
    if (++refills < 1000)
        write_raw(b, frame_bytes, sizeof(frame_bytes));
}

TEST(one_pump_is_bounded_however_fast_the_peer_writes)
{
    struct chan_handlers handlers = log_handlers;
    struct bed b;
    int fds[2];

    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) < 0)
        abort();
    chan_log_init(&b.log);
    handlers.on_data = refill;
    b.c = chan_new(fds[0], CHAN_AGENT, &handlers, &b.log);
    b.peer = fds[1];
    refills = 0;
    EXPECT(frame_u32(&b, 1, FRAME_OPEN, 0) == 0);
    EXPECT(frame(&b, 1, FRAME_DATA, 0, "x", 1) == 0);
    for (unsigned i = 0; i < 3 && refills < 10; i++)
        EXPECT(chan_pump(b.c) == 0);
    EXPECT(refills >= 10 && refills <= 100);
    bed_close(&b);
}

TEST(frames_for_a_stream_that_is_gone_are_ignored)
{
    struct bed b;
    static char frames[120000];
    size_t n = sizeof(frames) / FRAME_HEADER;

    for (size_t i = 0; i < n; i++)
        memcpy(frames + i * FRAME_HEADER, "\0\0\0\0\1\0\0\0\3\0\0\0", FRAME_HEADER);
    bed_open(&b, CHAN_AGENT);
    EXPECT(frame_u32(&b, 2, FRAME_OPEN, 0) == 0);
    write_raw(&b, frames, n * FRAME_HEADER);
    EXPECT(chan_pump(b.c) == 0);
    EXPECT(chan_pump(b.c) == 0);
    EXPECT(b.log.eofs == 0);
    EXPECT(frame(&b, 2, FRAME_DATA, 0, "x", 1) == 0);
    EXPECT_STR(b.log.data.buf, "x");
    bed_close(&b);
}

TAP_MAIN
