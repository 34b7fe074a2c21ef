/* Kernels that come over the line. */
#include "lib/ipc/ipc.h"
#include "agent_peer.h"

#include "inside/agent/kernel_packets.h"

/* A spare that is ready, and a cell that runs in it. */
static void start_cell(struct agent_host *h, struct peer *p, struct call *c)
{
    unsigned n;

    start_twins(h);
    peer_give(h, p);
    EXPECT_STR(peer_hears(h, p), "Bpython");
    peer_say(p, "Q", 1);
    cell_open(h, c, "", "", 0, "code");
    EXPECT_STR(peer_passes(h, p, 'G', &n), "D/home/user");
    EXPECT(n == 7);
    EXPECT_STR(peer_hears(h, p), "W");
    EXPECT_STR(peer_hears(h, p), "X\1===code");
    EXPECT(host_wait(h, &c->executing, AGENT_WAIT_MS));
}

TEST(a_spare_is_warm_and_is_used)
{
    struct agent_host h;
    struct call c;
    struct peer p, more;

    start_twins(&h);
    peer_give(&h, &p);
    EXPECT_STR(peer_hears(&h, &p), "Bpython");
    unsigned n; /* all that does not depend on whose it will be comes at once */
    EXPECT_STR(peer_passes(&h, &p, 'G', &n), "D/home/user");
    EXPECT(n == 7);
    EXPECT_STR(peer_hears(&h, &p), "W");
    peer_give(&h, &more); /* one is enough */
    EXPECT(peer_killed(&h, &more));
    peer_done(&more);

    call_open(&h, &c, OP_KERNEL_EXECUTE, "ssUusus", "", "", (uint64_t)0, 1u, "A=1", 1u, "B=2");
    cell_send(&h, &c, "1+1");
    EXPECT_STR(peer_hears(&h, &p), "GA=1");
    EXPECT_STR(peer_hears(&h, &p), ""); /* it is not ready */
    EXPECT(!c.executing && strstr(contexts(&h), " python /home/user 1 0 1\n"));
    peer_say(&p, "Q", 1);
    EXPECT_STR(peer_hears(&h, &p), "VB=2");
    EXPECT_STR(peer_hears(&h, &p), "X\1===1+1");
    peer_say(&p, "Rm", 2);
    peer_say(&p, "Ttext\0002", 7);
    peer_say(&p, "r", 1);
    peer_say(&p, "r", 1); /* one that was interrupted is not sure of the first */
    peer_say(&p, "F\1\0\0\0", 5);
    EXPECT(cell_wait(&h, &c).how == KERNEL_DONE);
    EXPECT_STR(c.story.buf, "kRm\nkTtext=2\nkr\n");
    EXPECT(line_asks(&h, 0) == 0);
    call_done(&c);
    peer_done(&p);
    host_stop(&h);
}

TEST(a_twin_is_asked_for)
{
    struct agent_host h;
    struct call c, other;
    struct peer p, late;
    unsigned n;

    start_twins(&h);
    cell_open(&h, &c, "", "bash", 0, "true");
    cell_open(&h, &other, "", "", 0, "1");
    EXPECT(line_asks(&h, 1000) == LINE_KERNEL);
    EXPECT(line_asks(&h, 50) == 0); /* one at a time */
    peer_give(&h, &p);
    EXPECT_STR(peer_hears(&h, &p), "Bbash");
    EXPECT_STR(peer_passes(&h, &p, 'G', &n), "D/home/user");

    /* the other one is told that there is none, and gets a real one */
    EXPECT(line_asks(&h, 1000) == LINE_KERNEL);
    struct line_message m = {.what = LINE_NO_KERNEL};
    EXPECT(ipc_send(h.line, &m, sizeof(m), NULL, 0) == 0);
    EXPECT(cell_wait(&h, &other).how == KERNEL_DONE);
    EXPECT_STR(other.story.buf, "kRm\nkTtext=1\nkr\n");
    call_done(&other);
    chan_cancel(h.chan, c.stream);
    EXPECT(host_wait(&h, &c.ended, AGENT_WAIT_MS));
    call_done(&c);
    peer_hang_up(&p);

    /* and so does one that is told nothing; what comes late is the next one's */
    call_open(&h, &c, OP_KERNEL_CREATE, "ss", "python", "");
    EXPECT(host_wait(&h, &c.ended, AGENT_WAIT_MS));
    cell_open(&h, &other, c.result.buf + 4, "", 0, "2");
    EXPECT(line_asks(&h, 1000) == LINE_KERNEL);
    EXPECT(cell_wait(&h, &other).how == KERNEL_DONE);
    EXPECT_STR(other.story.buf, "kRm\nkTtext=2\nkr\n");
    call_done(&other);
    call_done(&c);
    peer_give(&h, &late);
    EXPECT_STR(peer_hears(&h, &late), "Bpython");
    peer_done(&late);
    host_stop(&h);
    call_done(&p.body);
}

TEST(node_is_never_a_twin)
{
    struct agent_host h;
    struct call c;

    host_kernels = "/nowhere";
    start_twins(&h);
    cell_open(&h, &c, "", "js", 0, "1");
    EXPECT(line_asks(&h, 50) == 0);
    EXPECT(host_wait(&h, &c.ended, AGENT_WAIT_MS) && c.status == EIO);
    EXPECT(strncmp(c.message, "cannot start the javascript kernel: ", 36) == 0);
    call_done(&c);
    host_stop(&h);
    host_kernels = HOST_KERNELS;
}

TEST(what_was_written_before_comes_before)
{
    struct agent_host h;
    struct call c;
    struct peer p;

    start_cell(&h, &p, &c);
    EXPECT(write(p.out, "one", 3) == 3 && write(p.err, "two", 3) == 3);
    peer_say(&p, "Rd", 2);
    peer_say(&p, "r", 1);
    EXPECT(write(p.out, "three", 5) == 5);
    peer_say(&p, "F\1\0\0\0", 5);
    EXPECT(cell_wait(&h, &c).how == KERNEL_DONE);
    EXPECT_STR(c.err.buf, "two");
    EXPECT_STR(c.out.buf, "onethree");
    const char *display = strstr(c.story.buf, "kRd\n");
    EXPECT(display && strstr(c.story.buf, "1one") < display &&
           strstr(c.story.buf, "2two") < display);
    call_done(&c);
    peer_done(&p);
    host_stop(&h);
}

/* A packet is not cut, however little credit there is. */
TEST(packets_wait_for_credit)
{
    struct agent_host h;
    struct call c;
    struct peer p;
    static char field[KERNEL_PACKET_MAX];
    bool never = false;
    int sent = 0;

    start_cell(&h, &p, &c);
    c.hold = true;
    memset(field, 'x', sizeof(field));
    memcpy(field, "Ttext", 6);
    peer_say(&p, "Rm", 2);
    for (; sent < 40; sent++) {
        int tries = 0;
        while (send(p.control, field, sizeof(field) - 100, MSG_DONTWAIT) < 0 && ++tries < 20)
            host_wait(&h, &never, 10);
        if (tries == 20)
            break;
    }
    EXPECT(sent < 20 && c.held <= CHAN_WINDOW && c.held > CHAN_WINDOW - KERNEL_PACKET_MAX);
    c.hold = false;
    chan_consumed(h.chan, c.stream, c.held);
    for (; sent < 100; sent++)
        while (send(p.control, field, sizeof(field) - 100, MSG_DONTWAIT) < 0)
            host_wait(&h, &never, 1);
    peer_say(&p, "r", 1);
    peer_say(&p, "F\1\0\0\0", 5);
    EXPECT(cell_wait(&h, &c).how == KERNEL_DONE);
    call_done(&c);
    peer_done(&p);
    host_stop(&h);
}

TEST(rules_that_are_broken)
{
    static char long_packet[KERNEL_PACKET_MAX + 1] = "Ttext\0";
    static const struct {
        const char *first, *packet;
        size_t len;
    } bad[] = {
        {"", "Q", 1},
        {"", "x", 1},
        {"", "Rx", 2},
        {"", "R", 1},
        {"", "Ttext\0a", 7},
        {"", "rr", 2},
        {"", "F\2\0\0\0", 5},
        {"", "F\1\0\0", 4},
        {"", "P", 1},
        {"Rm", "Rm", 2},
        {"Rm", "F\1\0\0\0", 5},
        {"Rm", "Ttext", 5},
        {"Rm", "T\0x", 3},
        {"Rm", "TText\0x", 7},
        {"Rm", "Jabcdefghijklmnopqrstuvwxyzabcdefg\0x", 36},
        {"Rm", "rr", 2},
        {"Rm", long_packet, sizeof(long_packet)},
    };

    for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
        struct agent_host h;
        struct call c, next;
        struct peer p, second;
        unsigned n;

        start_cell(&h, &p, &c);
        if (bad[i].first[0])
            peer_say(&p, bad[i].first, strlen(bad[i].first));
        peer_say(&p, bad[i].packet, bad[i].len);
        EXPECT(cell_wait(&h, &c).how == KERNEL_BROKE);
        EXPECT(peer_killed(&h, &p));
        /* another is on its way at once */
        EXPECT(line_asks(&h, 1000) == LINE_KERNEL);
        peer_give(&h, &second);
        EXPECT_STR(peer_hears(&h, &second), "Bpython");
        EXPECT_STR(peer_passes(&h, &second, 'G', &n), "D/home/user");
        peer_say(&second, "Q", 1);
        cell_open(&h, &next, "", "", 0, "2");
        EXPECT_STR(peer_hears(&h, &second), "X\1===2");
        EXPECT(host_wait(&h, &next.executing, AGENT_WAIT_MS));
        EXPECT_STR(next.events.buf, "1:\n");
        call_done(&c);
        call_done(&next);
        peer_done(&p);
        peer_done(&second);
        host_stop(&h);
    }
}

TEST(a_result_has_a_limit)
{
    struct agent_host h;
    struct call c;
    struct peer p;
    static char field[KERNEL_PACKET_MAX] = "Ttext";
    bool never = false;
    size_t sent = 0;

    start_cell(&h, &p, &c);
    peer_say(&p, "Rm", 2);
    while (!c.ended && sent < 2 * (size_t)KERNEL_RESULT_MAX)
        if (send(p.control, field, sizeof(field), MSG_DONTWAIT | MSG_NOSIGNAL) > 0)
            sent += sizeof(field);
        else
            host_wait(&h, &never, 1);
    EXPECT(sent <= KERNEL_RESULT_MAX + (1u << 20));
    EXPECT(cell_wait(&h, &c).how == KERNEL_BROKE);
    call_done(&c);
    peer_done(&p);
    host_stop(&h);
}

TEST(before_it_is_ready)
{
    struct agent_host h;
    struct call c;
    struct peer p;

    /* a spare that is no good is let go of, and one that was asked for is replaced by a cold one */
    start_twins(&h);
    peer_give(&h, &p);
    peer_say(&p, "Rm", 2);
    EXPECT(peer_killed(&h, &p));
    peer_done(&p);
    for (int dies = 0; dies < 2; dies++) {
        cell_open(&h, &c, "", dies ? "bash" : "", 0, "1");
        EXPECT(line_asks(&h, 1000) == LINE_KERNEL);
        peer_give(&h, &p);
        EXPECT_STR(peer_hears(&h, &p), dies ? "Bbash" : "Bpython");
        if (dies)
            EXPECT(write(p.pidfd, "", 1) == 1);
        else
            peer_say(&p, "Rm", 2);
        EXPECT(cell_wait(&h, &c).how == KERNEL_DONE);
        EXPECT_STR(c.events.buf, "1:\n");
        EXPECT(dies || peer_killed(&h, &p));
        call_done(&c);
        peer_done(&p);
    }
    EXPECT(line_asks(&h, 0) == 0);
    host_stop(&h);
}

TEST(packets_outside_of_a_cell_are_dropped)
{
    struct agent_host h;
    struct call c, next;
    struct peer p;

    start_cell(&h, &p, &c);
    peer_say(&p, "F\1\0\0\0", 5);
    EXPECT(cell_wait(&h, &c).how == KERNEL_DONE);
    peer_say(&p, "Rd", 2);
    peer_say(&p, "Ttext\0late", 10);
    CALL(&h, &next, OP_PING, "");
    call_done(&next);
    /* what began outside stays outside */
    cell_open(&h, &next, "", "", 0, "");
    EXPECT_STR(peer_hears(&h, &p), "X\2===");
    peer_say(&p, "Ttext\0r", 7);
    peer_say(&p, "r", 1);
    peer_say(&p, "Rd", 2);
    peer_say(&p, "r", 1);
    peer_say(&p, "F\2\0\0\0", 5);
    EXPECT(cell_wait(&h, &next).how == KERNEL_DONE);
    EXPECT_STR(next.story.buf, "kRd\nkr\n");
    call_done(&c);
    call_done(&next);

    /* an end that is no cell's is a breach; nobody hears of it but the next */
    peer_say(&p, "F\2\0\0\0", 5);
    EXPECT(peer_killed(&h, &p));
    cell_open(&h, &c, "", "", 0, "");
    EXPECT(line_asks(&h, 1000) == LINE_KERNEL);
    peer_done(&p);
    peer_give(&h, &p);
    peer_say(&p, "Q", 1);
    EXPECT(host_wait(&h, &c.executing, AGENT_WAIT_MS));
    EXPECT_STR(c.events.buf, "1:the kernel broke its protocol after a cell and was killed: its "
                             "variables are gone\n");
    call_done(&c);
    peer_done(&p);
    host_stop(&h);
}

TEST(the_end_of_a_twin)
{
    struct agent_host h;
    struct call c;
    struct peer p;
    char id[KERNEL_ID_LEN + 1];

    start_cell(&h, &p, &c);
    EXPECT(write(p.out, "last", 4) == 4);
    peer_say(&p, "Rd", 2);
    EXPECT(write(p.err, "words", 5) == 5);
    EXPECT(write(p.pidfd, "", 1) == 1);
    struct cell_end end = cell_wait(&h, &c);
    EXPECT(end.how == KERNEL_DIED && end.code == KERNEL_CODE_UNKNOWN);
    EXPECT_STR(c.out.buf, "last");
    EXPECT_STR(c.err.buf, "words");
    EXPECT(strstr(c.story.buf, "kRd\n"));
    call_done(&c);
    peer_done(&p);

    /* the one that replaces it hangs up between cells */
    EXPECT(line_asks(&h, 1000) == LINE_KERNEL);
    peer_give(&h, &p);
    peer_say(&p, "Q", 1);
    default_id(&h, "python", id);
    EXPECT(wait_state(&h, id, KERNEL_IDLE));
    close(p.control);
    p.control = -1;
    EXPECT(peer_killed(&h, &p));
    EXPECT(write(p.pidfd, "", 1) == 1);
    EXPECT(wait_state(&h, id, KERNEL_ABSENT));
    peer_done(&p);
    host_stop(&h);
}

TEST(interrupts_go_to_the_group)
{
    struct agent_host h;
    struct call c;
    struct peer p;
    char id[KERNEL_ID_LEN + 1];

    start_cell(&h, &p, &c);
    default_id(&h, "python", id);
    EXPECT(kernel_op(&h, OP_KERNEL_INTERRUPT, id) == 0);
    EXPECT(host_wait_output(&h, &p.body, "interrupted\n"));
    EXPECT(!c.ended);
    /* and again, should the first have come too early */
    EXPECT(host_wait_output(&h, &p.body, "interrupted\ninterrupted\n"));
    EXPECT(cell_wait(&h, &c).how == KERNEL_STUCK);
    EXPECT(peer_killed(&h, &p));
    call_done(&c);
    peer_done(&p);
    host_stop(&h);
}

/* Code in pieces, which are sent as the kernel reads them. */
TEST(code_comes_in_pieces)
{
    struct agent_host h;
    struct call c, other;
    struct peer p;
    static char code[300000];
    bool never = false;

    start_cell(&h, &p, &c);
    peer_say(&p, "F\1\0\0\0", 5);
    EXPECT(cell_wait(&h, &c).how == KERNEL_DONE);
    call_done(&c);
    memset(code, 'a', sizeof(code));
    call_open(&h, &c, OP_KERNEL_EXECUTE, "ssUuu", "", "", (uint64_t)0, 0u, 0u);
    for (int i = 0; i < 5; i++) {
        chan_send(h.chan, c.stream, 0, code, sizeof(code));
        while (chan_credit(c.stream) < sizeof(code))
            host_wait(&h, &never, 1);
    }
    chan_eof(h.chan, c.stream);
    EXPECT(host_wait(&h, &c.executing, AGENT_WAIT_MS));
    CALL(&h, &other, OP_PING, ""); /* the agent does not wait for it */
    EXPECT(other.status == 0);
    call_done(&other);
    size_t total = 0;
    const char *piece = peer_hears(&h, &p);
    for (; piece[0] == 'C'; piece = peer_hears(&h, &p)) {
        EXPECT(strlen(piece) == 128 * 1024 + 1);
        total += strlen(piece) - 1;
    }
    EXPECT(strncmp(piece, "X\2===a", 6) == 0 && total + strlen(piece) - 5 == 5 * sizeof(code));
    peer_say(&p, "F\2\0\0\0", 5);
    EXPECT(cell_wait(&h, &c).how == KERNEL_DONE);
    call_done(&c);
    peer_done(&p);
    host_stop(&h);
}

TAP_MAIN
