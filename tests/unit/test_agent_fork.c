/* Live fork, as the agent sees it: cells are held, contexts listed, and copies of kernels adopted.
 */
#include "agent_peer.h"

#define ID_A "aaaaaaaa-0000-4000-8000-000000000001"
#define ID_B "bbbbbbbb-0000-4000-8000-000000000002"

/* One context, as OP_KERNEL_ADOPT has it: id, language, cwd, is_default, cells, was, note, no
 * variables. */
#define ONE "sssuuusu"

static void hold_open(struct agent_host *h, struct call *c, uint64_t wait_ms)
{
    call_open(h, c, OP_KERNEL_HOLD, "U", wait_ms);
}

static void hold_end(struct agent_host *h, struct call *c)
{
    chan_cancel(h->chan, c->stream);
    EXPECT(host_wait(h, &c->ended, AGENT_WAIT_MS) && c->status == ECANCELED);
    call_done(c);
}

static uint32_t adopted(const struct call *c)
{
    struct wire_reader r;

    if (c->status != 0)
        printf("# %s\n", c->message);
    wire_reader_init(&r, c->result.buf, c->result.len);
    uint32_t n = wire_get_u32(&r);
    EXPECT(c->status == 0 && wire_done(&r));
    return n;
}

static void expect_ping(struct agent_host *h)
{
    struct call c;

    CALL(h, &c, OP_PING, "");
    EXPECT(c.status == 0);
    call_done(&c);
}

/* An idle kernel of the default Python context, which has run one cell with a variable. */
static void start_idle(struct agent_host *h, struct peer *p)
{
    struct call c;
    unsigned n;

    start_twins(h);
    peer_give(h, p);
    EXPECT_STR(peer_hears(h, p), "Bpython");
    peer_say(p, "Q", 1);
    call_open(h, &c, OP_KERNEL_EXECUTE, "ssUusu", "", "", (uint64_t)0, 1u, "A=1", 0u);
    cell_send(h, &c, "1");
    EXPECT_STR(peer_passes(h, p, 'G', &n), "D/home/user");
    EXPECT_STR(peer_hears(h, p), "W");
    EXPECT_STR(peer_passes(h, p, 'G', &n), "X\1===1");
    peer_say(p, "F\1\0\0\0", 5);
    EXPECT(cell_wait(h, &c).how == KERNEL_DONE);
    call_done(&c);
}

TEST(cells_wait_while_they_are_held)
{
    struct agent_host h;
    struct call hold, second, c;
    struct peer p;
    char id[KERNEL_ID_LEN + 1], expected[256];

    start_idle(&h, &p);
    default_id(&h, "python", id);
    hold_open(&h, &hold, 0);
    EXPECT(host_wait(&h, &hold.started, AGENT_WAIT_MS));
    snprintf(expected, sizeof(expected), "%s python /home/user 2 1 1 %u 1 A=1\n", id, p.body.pid);
    EXPECT(strstr(hold.events.buf, expected));
    EXPECT(strstr(hold.events.buf, " javascript /home/user 0 0 1 0 0 \n"));
    hold_open(&h, &second, 0);
    EXPECT(host_wait(&h, &second.ended, AGENT_WAIT_MS) && second.status == EALREADY);
    call_done(&second);

    cell_open(&h, &c, "", "", 0, "2");
    expect_ping(&h);
    EXPECT_STR(peer_hears(&h, &p), "");
    EXPECT(!c.executing && strstr(contexts(&h), " python /home/user 2 1 1\n"));
    hold_end(&h, &hold);
    EXPECT_STR(peer_hears(&h, &p), "X\2===2");
    peer_say(&p, "F\2\0\0\0", 5);
    EXPECT(cell_wait(&h, &c).how == KERNEL_DONE);
    call_done(&c);
    peer_done(&p);
    host_stop(&h);
}

#define THREADED                                                                                \
    "exec /usr/bin/python3 -c 'import threading; t = threading.Thread(target=threading.Event()" \
    ".wait); t.start(); print(\"up\", flush=True)'"

static void start_threaded(struct agent_host *h, struct peer *p)
{
    uint64_t deadline = clock_ns() + AGENT_WAIT_MS * 1000000ull;
    bool never = false;
    struct call c;
    unsigned n;

    start_twins(h);
    peer_give_process(h, p, 0, THREADED);
    while (!strstr(p->body.out.buf ? p->body.out.buf : "", "up") && clock_ns() < deadline)
        host_wait(h, &never, 10);
    EXPECT_STR(peer_hears(h, p), "Bpython");
    peer_say(p, "Q", 1);
    cell_open(h, &c, "", "", 0, "1");
    EXPECT_STR(peer_passes(h, p, 'G', &n), "D/home/user");
    EXPECT_STR(peer_hears(h, p), "W");
    EXPECT_STR(peer_hears(h, p), "X\1===1");
    peer_say(p, "F\1\0\0\0", 5);
    EXPECT(cell_wait(h, &c).how == KERNEL_DONE);
    call_done(&c);
}

/* One that has threads is asked to let them rest, and waited for. */
TEST(threads_rest_before_it_is_held)
{
    struct agent_host h;
    struct call hold;
    struct peer p;

    start_threaded(&h, &p);
    hold_open(&h, &hold, 0);
    EXPECT_STR(peer_hears(&h, &p), "P");
    expect_ping(&h);
    EXPECT(!hold.started && !hold.ended);
    peer_say(&p, "P", 1);
    EXPECT(host_wait(&h, &hold.started, AGENT_WAIT_MS));
    hold_end(&h, &hold);
    /* it was asked once, and says it once more */
    peer_say(&p, "P", 1);
    EXPECT(peer_killed(&h, &p));
    peer_done(&p);
    host_stop(&h);
}

/* One that does not answer holds nobody up for long, nor is it asked twice. */
TEST(threads_that_do_not_rest)
{
    struct agent_host h;
    struct call hold;
    struct peer p;

    start_threaded(&h, &p);
    for (int i = 0; i < 2; i++) {
        hold_open(&h, &hold, 0);
        EXPECT(host_wait(&h, &hold.started, AGENT_WAIT_MS));
        hold_end(&h, &hold);
    }
    EXPECT_STR(peer_hears(&h, &p), "P");
    EXPECT_STR(peer_hears(&h, &p), "");
    peer_done(&p);
    host_stop(&h);
}

TEST(holding_waits_for_the_cell_that_runs)
{
    struct agent_host h;
    struct call hold, c, next;
    struct peer p;

    start_idle(&h, &p);
    cell_open(&h, &c, "", "", 0, "2");
    EXPECT_STR(peer_hears(&h, &p), "X\2===2");
    for (int wait = 0; wait < 2; wait++) {
        hold_open(&h, &hold, wait ? 50 : 0);
        EXPECT(host_wait(&h, &hold.ended, AGENT_WAIT_MS) && hold.status == EBUSY);
        EXPECT(strncmp(hold.message, "a cell runs in context ", 23) == 0 && hold.events.len == 0);
        call_done(&hold);
    }
    hold_open(&h, &hold, AGENT_WAIT_MS);
    cell_open(&h, &next, "", "", 0, "3");
    expect_ping(&h);
    EXPECT(!hold.started && hold.events.len == 0);
    peer_say(&p, "F\2\0\0\0", 5);
    EXPECT(cell_wait(&h, &c).how == KERNEL_DONE);
    EXPECT(host_wait(&h, &hold.started, AGENT_WAIT_MS) && !next.executing);
    EXPECT_STR(peer_hears(&h, &p), "");
    hold_end(&h, &hold);
    EXPECT_STR(peer_hears(&h, &p), "X\3===3");
    call_done(&c);
    call_done(&next);
    peer_done(&p);
    host_stop(&h);
}

/* What was asked for over it goes too: a cell that waited does not begin. */
TEST(a_channel_takes_its_hold_along)
{
    struct agent_host h;
    struct call hold, c;
    struct peer p;

    start_idle(&h, &p);
    cell_open(&h, &c, "", "", 0, "2");
    EXPECT_STR(peer_hears(&h, &p), "X\2===2");
    call_done(&c);
    cell_open(&h, &c, "", "", 0, "waits");
    hold_open(&h, &hold, AGENT_WAIT_MS);
    expect_ping(&h);
    host_connect(&h);
    call_done(&c);
    call_done(&hold);
    expect_ping(&h);
    peer_say(&p, "F\2\0\0\0", 5);
    EXPECT_STR(peer_hears(&h, &p), "");
    cell_open(&h, &c, "", "", 0, "3");
    EXPECT_STR(peer_hears(&h, &p), "X\3===3");
    call_done(&c);
    peer_done(&p);
    host_stop(&h);
}

TEST(a_hold_ends_by_itself)
{
    struct agent_host h;
    struct call hold;

    start_twins(&h);
    hold_open(&h, &hold, 0);
    EXPECT(host_wait(&h, &hold.started, AGENT_WAIT_MS));
    EXPECT(host_wait(&h, &hold.ended, KERNEL_HOLD_MS + AGENT_WAIT_MS));
    EXPECT(hold.status == ETIMEDOUT);
    call_done(&hold);
    hold_open(&h, &hold, 0);
    EXPECT(host_wait(&h, &hold.started, AGENT_WAIT_MS));
    hold_end(&h, &hold);
    host_stop(&h);
}

TEST(copies_are_adopted)
{
    struct agent_host h;
    struct call c;
    struct peer old, a, b, unwanted;

    start_idle(&h, &old);
    peer_give_copy(&h, &a, 7);
    peer_give_copy(&h, &b, 8);
    peer_give_copy(&h, &unwanted, 9);
    EXPECT_STR(peer_hears(&h, &a), "Y");
    EXPECT_STR(peer_hears(&h, &b), "Y");
    peer_say(&a, "Q", 1);
    EXPECT(write(b.err, "of its hook", 11) == 11);
    /* they are no contexts' yet, and no spares */
    EXPECT(strstr(contexts(&h), " python /home/user 2 1 1\n"));

    CALL(&h, &c, OP_KERNEL_ADOPT, "u" ONE "sssuuususs" ONE, 3u, ID_A, "python", "/tmp", 1u, 5u, 7u,
         "", 0u, ID_B, "python", "/home", 0u, 6u, 8u, "", 2u, "A=1", "B=2",
         "cccccccc-0000-4000-8000-000000000003", "python", "/", 0u, 4u, 0u, "it was left behind",
         0u);
    EXPECT(adopted(&c) == 2);
    call_done(&c);
    EXPECT(peer_killed(&h, &old) && peer_killed(&h, &unwanted));
    peer_done(&old);
    peer_done(&unwanted);
    EXPECT_STR(context_line(&h, ID_A), "python /tmp 2 5 1");
    EXPECT_STR(context_line(&h, ID_B), "python /home 1 6 0");

    /* cells go on where they were; nothing is said to the kernel that it knows */
    cell_open(&h, &c, "", "", 0, "a");
    EXPECT_STR(peer_hears(&h, &a), "X\6===a");
    peer_say(&a, "F\6\0\0\0", 5);
    EXPECT(cell_wait(&h, &c).how == KERNEL_DONE);
    EXPECT_STR(c.events.buf, "6:\n");
    call_done(&c);
    /* ... but for the variables that are another's now */
    EXPECT_STR(peer_hears(&h, &b), "GA=1");
    EXPECT_STR(peer_hears(&h, &b), "GB=2");
    cell_open(&h, &c, ID_B, "", 0, "b");
    EXPECT_STR(peer_hears(&h, &b), ""); /* it is not ready */
    peer_say(&b, "Q", 1);
    EXPECT_STR(peer_hears(&h, &b), "X\7===b");
    peer_say(&b, "F\7\0\0\0", 5);
    EXPECT(cell_wait(&h, &c).how == KERNEL_DONE);
    EXPECT_STR(c.err.buf, "of its hook");
    call_done(&c);
    /* one without a kernel gets a new one, and is told why */
    cell_open(&h, &c, "cccccccc-0000-4000-8000-000000000003", "", 0, "c");
    EXPECT(line_asks(&h, 1000) == LINE_KERNEL);
    peer_give(&h, &old);
    peer_say(&old, "Q", 1);
    EXPECT(host_wait(&h, &c.executing, AGENT_WAIT_MS));
    EXPECT_STR(c.events.buf, "1:it was left behind\n");
    call_done(&c);
    peer_done(&old);
    peer_done(&a);
    peer_done(&b);
    host_stop(&h);
}

/* It knows all that it was copied with, and would be left out otherwise. */
TEST(holding_waits_for_a_copy_that_wakes_up)
{
    struct agent_host h;
    struct call hold, c;
    struct peer old, a;
    char expected[256];

    start_idle(&h, &old);
    peer_give_copy(&h, &a, 7);
    EXPECT_STR(peer_hears(&h, &a), "Y");
    CALL(&h, &c, OP_KERNEL_ADOPT, "u" ONE, 1u, ID_A, "python", "/tmp", 1u, 5u, 7u, "", 0u);
    EXPECT(adopted(&c) == 1);
    call_done(&c);
    hold_open(&h, &hold, 0);
    expect_ping(&h);
    EXPECT(!hold.started && !hold.ended && hold.events.len == 0);
    peer_say(&a, "Q", 1);
    EXPECT(host_wait(&h, &hold.started, AGENT_WAIT_MS));
    snprintf(expected, sizeof(expected), ID_A " python /tmp 2 5 1 %u 1 ", a.body.pid);
    EXPECT(strstr(hold.events.buf, expected));
    hold_end(&h, &hold);
    peer_done(&old);
    peer_done(&a);
    host_stop(&h);
}

TEST(a_copy_that_is_lost)
{
    struct agent_host h;
    struct call c;
    struct peer p, next;
    unsigned n;

    /* before it was adopted */
    start_twins(&h);
    peer_give_copy(&h, &p, 7);
    EXPECT_STR(peer_hears(&h, &p), "Y");
    EXPECT(write(p.pidfd, "", 1) == 1);
    expect_ping(&h);
    CALL(&h, &c, OP_KERNEL_ADOPT, "u" ONE, 1u, ID_A, "python", "/tmp", 1u, 5u, 7u, "", 0u);
    EXPECT(c.status == ENOENT);
    call_done(&c);
    peer_done(&p);
    /* after that, and before it was ready: what it knew is gone, and the next cell is told */
    peer_give_copy(&h, &p, 7);
    CALL(&h, &c, OP_KERNEL_ADOPT, "u" ONE, 1u, ID_A, "python", "/tmp", 1u, 5u, 7u, "", 0u);
    EXPECT(adopted(&c) == 1);
    call_done(&c);
    peer_say(&p, "Rm", 2); /* no kernel would */
    EXPECT(peer_killed(&h, &p));
    peer_done(&p);
    cell_open(&h, &c, ID_A, "", 0, "code");
    EXPECT(line_asks(&h, 1000) == LINE_KERNEL);
    peer_give(&h, &next);
    EXPECT_STR(peer_hears(&h, &next), "Bpython");
    EXPECT_STR(peer_passes(&h, &next, 'G', &n), "D/tmp");
    peer_say(&next, "Q", 1);
    EXPECT(host_wait(&h, &c.executing, AGENT_WAIT_MS));
    EXPECT(strncmp(c.events.buf, "1:the kernel broke its protocol", 31) == 0);
    call_done(&c);
    peer_done(&next);
    host_stop(&h);
}

TEST(requests_that_make_no_sense)
{
    struct agent_host h;
    struct call c;
    struct peer p;
    static char note[1100];
    char before[65536];

    memset(note, 'n', sizeof(note) - 1);
    start_idle(&h, &p);
    snprintf(before, sizeof(before), "%s", contexts(&h));
#define REFUSED(errnum, ...)                          \
    do {                                              \
        CALL(&h, &c, OP_KERNEL_ADOPT, __VA_ARGS__);   \
        EXPECT(c.status == (errnum) && c.message[0]); \
        call_done(&c);                                \
        EXPECT_STR(contexts(&h), before);             \
    } while (0)
    REFUSED(EINVAL, "");
    REFUSED(EINVAL, "u", 65u);
    REFUSED(EINVAL, "u", 1u);
    REFUSED(EINVAL, "u" ONE, 1u, "no id", "python", "/", 0u, 0u, 0u, "", 0u);
    REFUSED(EINVAL, "u" ONE, 1u, "../../../../../../../../../../../../", "python", "/", 0u, 0u, 0u,
            "", 0u);
    REFUSED(EINVAL, "u" ONE, 1u, ID_A, "cobol", "/", 0u, 0u, 0u, "", 0u);
    REFUSED(EINVAL, "u" ONE, 1u, ID_A, "python", "/", 0u, 0u, 0u, note, 0u);
    REFUSED(EINVAL, "u" ONE, 1u, ID_A, "python", "/", 0u, 0u, 0u, "", 1u);
    REFUSED(EINVAL, "u" ONE "s", 1u, ID_A, "python", "/", 0u, 0u, 0u, "", 1u, "novalue");
    REFUSED(EINVAL, "u" ONE "u", 1u, ID_A, "python", "/", 0u, 0u, 0u, "", 0u, 0u);
    REFUSED(EINVAL, "u" ONE ONE, 2u, ID_A, "python", "/", 0u, 0u, 0u, "", 0u, ID_A, "python", "/",
            0u, 0u, 0u, "", 0u);
    REFUSED(EINVAL, "u" ONE ONE, 2u, ID_A, "python", "/", 1u, 0u, 0u, "", 0u, ID_B, "python", "/",
            1u, 0u, 0u, "", 0u);
    REFUSED(ENOENT, "u" ONE, 1u, ID_A, "python", "/", 1u, 0u, p.body.pid, "", 0u);
#undef REFUSED
    CALL(&h, &c, OP_KERNEL_HOLD, "");
    EXPECT(c.status == EINVAL);
    call_done(&c);
    /* the kernel was not touched */
    cell_open(&h, &c, "", "", 0, "2");
    EXPECT_STR(peer_hears(&h, &p), "X\2===2");
    call_done(&c);
    peer_done(&p);
    host_stop(&h);
}

/* More copies than there can be contexts are not kept. */
TEST(too_many_copies)
{
    struct agent_host h;
    struct peer p[KERNELS_MAX + 1];

    start_twins(&h);
    for (int i = 0; i < KERNELS_MAX + 1; i++)
        peer_give_copy(&h, &p[i], i + 10);
    EXPECT(peer_killed(&h, &p[KERNELS_MAX]));
    EXPECT(!p[0].body.ended && strcmp(peer_hears(&h, &p[0]), "Y") == 0);
    for (int i = 0; i < KERNELS_MAX + 1; i++)
        peer_done(&p[i]);
    host_stop(&h);
}

TAP_MAIN
