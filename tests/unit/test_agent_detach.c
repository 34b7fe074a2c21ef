/* Processes that are not their stream's: found again, fed, watched and signalled by others. */
#include "agent_host.h"

static void start(struct agent_host *h, struct call *c, uint32_t flags, uint64_t timeout_ms,
                  const char *tag, const char *note, const char *script)
{
    call_open(h, c, OP_PROCESS_START, "ssuuuUssusssu", "user", "", flags, 24u, 80u, timeout_ms, tag,
              note, 3u, "/bin/bash", "-c", script, 0u);
}

static void start_detached(struct agent_host *h, struct call *c, const char *tag,
                           const char *script)
{
    start(h, c, PROC_DETACH | PROC_STDIN, 0, tag, "", script);
    EXPECT(host_wait(h, &c->started, AGENT_WAIT_MS));
}

static int simple(struct agent_host *h, enum chan_op op, const char *fmt, uint32_t pid,
                  const char *tag, uint32_t a, uint32_t b)
{
    struct call c;

    CALL(h, &c, op, fmt, pid, tag, a, b);
    int status = c.status;
    call_done(&c);
    return status;
}

static int send_signal(struct agent_host *h, uint32_t pid, const char *tag, uint32_t sig)
{
    return simple(h, OP_PROCESS_SIGNAL, "usu", pid, tag, sig, 0);
}

/* Writes to its input in one go. */
static int feed(struct agent_host *h, uint32_t pid, const char *tag, uint32_t flags,
                const char *text)
{
    struct call c;

    call_open(h, &c, OP_PROCESS_INPUT, "usu", pid, tag, flags);
    if (text[0])
        chan_send(h->chan, c.stream, CHAN_STDIN, text, strlen(text));
    chan_eof(h->chan, c.stream);
    EXPECT(host_wait(h, &c.ended, AGENT_WAIT_MS));
    int status = c.status;
    call_done(&c);
    return status;
}

static void cancel(struct agent_host *h, struct call *c)
{
    chan_cancel(h->chan, c->stream);
    EXPECT(host_wait(h, &c->ended, AGENT_WAIT_MS) && c->status == ECANCELED);
    call_done(c);
}

TEST(cancel_takes_a_subscriber_away_only)
{
    struct agent_host h;
    struct call c, other;

    host_start(&h);
    start_detached(&h, &c, "server", "echo ready; read line; echo got $line; exit 5");
    EXPECT(host_wait_output(&h, &c, "ready\n"));
    uint32_t pid = c.pid;
    cancel(&h, &c);

    call_open(&h, &other, OP_PROCESS_ATTACH, "us", 0u, "server");
    EXPECT(host_wait(&h, &other.started, AGENT_WAIT_MS) && other.pid == pid);
    EXPECT(feed(&h, pid, "", 0, "hello\n") == 0);
    EXPECT(host_wait(&h, &other.ended, AGENT_WAIT_MS));
    EXPECT_STR(other.out.buf, "got hello\n"); /* from then on */
    EXPECT(call_process(&other).code == 5);
    call_done(&other);
    host_stop(&h);
}

TEST(every_subscriber_gets_everything)
{
    struct agent_host h;
    struct call c, more[3];

    host_start(&h);
    start_detached(&h, &c, "", "read x; seq 100000; echo end >&2");
    for (size_t i = 0; i < ARRAY_SIZE(more); i++) {
        call_open(&h, &more[i], OP_PROCESS_ATTACH, "us", c.pid, "");
        EXPECT(host_wait(&h, &more[i].started, AGENT_WAIT_MS));
    }
    EXPECT(feed(&h, c.pid, "", 0, "go\n") == 0);
    EXPECT(host_wait(&h, &c.ended, AGENT_WAIT_MS) && c.out.len > 500000);
    for (size_t i = 0; i < ARRAY_SIZE(more); i++) {
        EXPECT(host_wait(&h, &more[i].ended, AGENT_WAIT_MS));
        EXPECT(more[i].out.len == c.out.len && memcmp(more[i].out.buf, c.out.buf, c.out.len) == 0);
        EXPECT_STR(more[i].err.buf, "end\n");
        EXPECT(call_process(&more[i]).how == PROC_EXITED);
        call_done(&more[i]);
    }
    call_done(&c);
    host_stop(&h);
}

/* A reader that stops holds the program, not the agent; one that leaves lets it go on. */
TEST(the_slowest_subscriber_sets_the_pace)
{
    struct agent_host h;
    struct call c, slow;
    bool never = false;

    host_start(&h);
    start_detached(&h, &c, "", "read x; head -c 20000000 /dev/zero; echo end");
    call_open(&h, &slow, OP_PROCESS_ATTACH, "us", c.pid, "");
    EXPECT(host_wait(&h, &slow.started, AGENT_WAIT_MS));
    slow.hold = true;
    EXPECT(feed(&h, c.pid, "", 0, "go\n") == 0);
    host_wait(&h, &never, 300);
    EXPECT(!c.ended && slow.out.len == CHAN_WINDOW && c.out.len == CHAN_WINDOW);
    cancel(&h, &slow);
    EXPECT(host_wait(&h, &c.ended, AGENT_WAIT_MS) && c.out.len == 20000004);
    call_done(&c);
    host_stop(&h);
}

TEST(without_subscribers_output_is_dropped)
{
    struct agent_host h;
    struct call c;

    host_start(&h);
    start_detached(&h, &c, "", "read x; head -c 20000000 /dev/zero; echo done > /tmp/done; cat");
    uint32_t pid = c.pid;
    cancel(&h, &c);
    EXPECT(feed(&h, pid, "", 0, "go\n") == 0);
    EXPECT_STR(shell_says(&h, "user", "until [ -s /tmp/done ]; do sleep 0.01; done; cat /tmp/done"),
               "done\n");
    EXPECT(send_signal(&h, pid, "", SIGTERM) == 0);
    host_stop(&h);
}

TEST(how_it_ended_is_kept_for_a_while)
{
    struct agent_host h;
    struct call c;

    host_start(&h);
    start_detached(&h, &c, "kept", "exit 9");
    EXPECT(host_wait(&h, &c.ended, AGENT_WAIT_MS));
    uint32_t pid = c.pid;
    call_done(&c);
    for (int by_tag = 0; by_tag < 2; by_tag++) {
        CALL(&h, &c, OP_PROCESS_ATTACH, "us", by_tag ? 0u : pid, by_tag ? "kept" : "");
        EXPECT(c.started && c.pid == pid);
        struct process_result p = call_process(&c);
        EXPECT(p.how == PROC_EXITED && p.code == 9);
        call_done(&c);
    }
    /* but it cannot be talked to */
    EXPECT(send_signal(&h, pid, "", SIGTERM) == ESRCH);
    EXPECT(feed(&h, pid, "", 0, "x") == ESRCH);
    EXPECT(simple(&h, OP_PROCESS_RESIZE, "usuu", pid, "", 1, 1) == ESRCH);
    CALL(&h, &c, OP_PROCESS_LIST, "");
    EXPECT(c.out.len == 0);
    call_done(&c);

    /* one that could not be started is not kept */
    CALL(&h, &c, OP_PROCESS_START, "ssuuuUssusu", "user", "", PROC_DETACH, 0u, 0u, (uint64_t)0,
         "bad", "", 1u, "/no/such", 0u);
    EXPECT(c.status == ENOENT);
    call_done(&c);
    EXPECT(simple(&h, OP_PROCESS_ATTACH, "us", 0, "bad", 0, 0) == ESRCH);
    EXPECT(simple(&h, OP_PROCESS_ATTACH, "us", 0, "", 0, 0) == ESRCH);
    EXPECT(simple(&h, OP_PROCESS_ATTACH, "us", 1, "", 0, 0) == ESRCH);
    host_stop(&h);
}

/* The newest of many with one tag; of those that are over, the table forgets the oldest. */
TEST(many_processes)
{
    enum { N = 1030 };
    struct agent_host h;
    struct call c;
    uint32_t first = 0, last = 0;

    host_start(&h);
    for (unsigned i = 0; i < N; i++) {
        start(&h, &c, PROC_DETACH, 0, "same", "", "");
        EXPECT(host_wait(&h, &c.ended, AGENT_WAIT_MS));
        first = i == 0 ? c.pid : first;
        last = c.pid;
        call_done(&c);
    }
    EXPECT(simple(&h, OP_PROCESS_ATTACH, "us", first, "", 0, 0) == ESRCH);
    CALL(&h, &c, OP_PROCESS_ATTACH, "us", 0u, "same");
    EXPECT(c.status == 0 && c.pid == last);
    call_done(&c);
    host_stop(&h);
}

TEST(list_carries_the_notes)
{
    enum { BIG = 900000, N = 6 };
    static struct call procs[N];
    struct agent_host h;
    struct call c;
    char *note = malloc(BIG + 1);

    host_start(&h);
    memset(note, 'n', BIG);
    note[BIG] = '\0';
    for (uint32_t i = 0; i < N; i++) {
        char tag[16];

        snprintf(tag, sizeof(tag), "tag %u", i);
        start(&h, &procs[i], PROC_DETACH, 0, tag, i % 2 ? note : "{}", "exec sleep 100");
        EXPECT(host_wait(&h, &procs[i].started, AGENT_WAIT_MS));
    }
    CALL(&h, &c, OP_PROCESS_LIST, "");
    EXPECT(c.status == 0 && c.result.len == 4 && c.result.buf[0] == N);
    struct wire_reader r;
    wire_reader_init(&r, c.out.buf, c.out.len);
    for (uint32_t i = 0; i < N; i++) {
        EXPECT(wire_get_u32(&r) == procs[i].pid);
        EXPECT_STR(wire_get_str(&r, 100), "user");
        EXPECT(wire_get_str(&r, 100)[4] == (char)('0' + i));
        EXPECT(strlen(wire_get_str(&r, OPS_NOTE_MAX)) == (i % 2 ? BIG : 2));
        EXPECT_STR(wire_get_str(&r, 1000), "/bin/bash -c exec sleep 100");
        call_done(&procs[i]);
    }
    EXPECT(wire_done(&r));
    call_done(&c);

    /* notes of all together have a limit: the agent's memory is the sandbox's */
    int status = 0;
    unsigned n = 0;
    for (; n < 40 && status == 0; n++) {
        start(&h, &c, PROC_DETACH, 0, "", note, "exec sleep 100");
        while (!c.started && !c.ended)
            host_wait(&h, &c.ended, 5);
        status = c.ended ? c.status : 0;
        if (!c.ended)
            chan_stream_set_owner(c.stream, &procs[0]);
        call_done(&c);
    }
    EXPECT(status == EAGAIN && n > 10 && n < 20);
    free(note);
    host_stop(&h);
}

TEST(input_comes_in_order)
{
    struct agent_host h;
    struct call c, blocked, x;
    bool never = false;
    static char block[100000];

    host_start(&h);
    memset(block, 'a', sizeof(block));
    start_detached(&h, &c, "", "until [ -e /tmp/go ]; do sleep 0.01; done; cat");
    /* more than the pipe holds: those after it wait for their turn */
    call_open(&h, &blocked, OP_PROCESS_INPUT, "usu", c.pid, "", 0u);
    chan_send(h.chan, blocked.stream, CHAN_STDIN, block, sizeof(block));
    chan_eof(h.chan, blocked.stream);
    call_open(&h, &x, OP_PROCESS_INPUT, "usu", c.pid, "", (uint32_t)INPUT_CLOSE);
    chan_send(h.chan, x.stream, CHAN_STDIN, "last", 4);
    chan_eof(h.chan, x.stream);
    host_wait(&h, &never, 100);
    EXPECT(!blocked.ended && !x.ended);
    shell_says(&h, "user", "touch /tmp/go");
    EXPECT(host_wait(&h, &c.ended, AGENT_WAIT_MS)); /* the last one has closed it */
    EXPECT(blocked.ended && blocked.status == 0 && x.ended && x.status == 0);
    EXPECT(c.out.len == sizeof(block) + 4 && memcmp(c.out.buf, block, sizeof(block)) == 0);
    EXPECT_STR(c.out.buf + sizeof(block), "last");
    call_done(&blocked);
    call_done(&x);
    call_done(&c);
    host_stop(&h);
}

TEST(input_of_the_wrong_kind)
{
    struct agent_host h;
    struct call pipe, tty, none, x;

    host_start(&h);
    start_detached(&h, &pipe, "pipe", "cat; sleep 100");
    start(&h, &tty, PROC_DETACH | PROC_PTY, 0, "tty", "", "cat; stty size; echo over");
    start(&h, &none, PROC_DETACH, 0, "none", "", "sleep 100");
    EXPECT(host_wait(&h, &tty.started, AGENT_WAIT_MS));
    EXPECT(host_wait(&h, &none.started, AGENT_WAIT_MS));
    EXPECT(feed(&h, 0, "pipe", INPUT_PTY, "x") == EINVAL);
    EXPECT(feed(&h, 0, "tty", 0, "x") == EINVAL);
    EXPECT(feed(&h, 0, "none", 0, "x") == EINVAL);
    EXPECT(feed(&h, 0, "nobody", 0, "x") == ESRCH);

    EXPECT(feed(&h, 0, "pipe", INPUT_CLOSE, "") == 0);
    EXPECT(feed(&h, 0, "pipe", 0, "x") == EPIPE);
    EXPECT(simple(&h, OP_PROCESS_RESIZE, "usuu", 0, "pipe", 1, 1) == ENOTTY);

    EXPECT(feed(&h, 0, "tty", INPUT_PTY, "line\n") == 0);
    EXPECT(simple(&h, OP_PROCESS_RESIZE, "usuu", 0, "tty", 50, 120) == 0);
    EXPECT(feed(&h, 0, "tty", INPUT_PTY | INPUT_CLOSE, "") == 0);
    EXPECT(host_wait(&h, &tty.ended, AGENT_WAIT_MS));
    EXPECT(strstr(tty.out.buf, "line\r\n") && strstr(tty.out.buf, "50 120\r\nover\r\n"));
    call_done(&tty);

    /* its process ends under it */
    call_open(&h, &x, OP_PROCESS_INPUT, "usu", 0u, "none", 0u);
    EXPECT(host_wait(&h, &x.ended, AGENT_WAIT_MS) && x.status == EINVAL);
    call_done(&x);
    start_detached(&h, &x, "reader", "sleep 100");
    call_done(&tty);
    call_open(&h, &tty, OP_PROCESS_INPUT, "usu", 0u, "reader", 0u);
    EXPECT(send_signal(&h, 0, "reader", SIGKILL) == 0);
    EXPECT(host_wait(&h, &tty.ended, AGENT_WAIT_MS) && tty.status == EPIPE);
    EXPECT(host_wait(&h, &x.ended, AGENT_WAIT_MS));
    call_done(&tty);
    call_done(&x);
    call_done(&pipe);
    call_done(&none);
    chan_free(h.chan);
    h.chan = NULL;
    host_stop(&h);
}

TEST(signals_by_tag)
{
    struct agent_host h;
    struct call c;

    host_start(&h);
    start_detached(&h, &c, "a", "trap 'echo caught; exit 3' TERM; echo ready; sleep 100 & wait");
    EXPECT(host_wait_output(&h, &c, "ready\n"));
    EXPECT(send_signal(&h, 0, "a", SIGTERM) == 0); /* the group: sleep dies of it */
    EXPECT(host_wait(&h, &c.ended, AGENT_WAIT_MS));
    EXPECT_STR(c.out.buf, "ready\ncaught\n");
    call_done(&c);
    EXPECT(host_runs_none(&h, "sleep"));

    /* SIGKILL reaches all of the session, jobs with groups of their own too */
    start_detached(&h, &c, "b", "set -m; sleep 101 & sleep 102 & echo ready; wait");
    EXPECT(host_wait_output(&h, &c, "ready\n"));
    EXPECT(send_signal(&h, 0, "b", SIGKILL) == 0);
    EXPECT(host_wait(&h, &c.ended, AGENT_WAIT_MS));
    struct process_result p = call_process(&c);
    EXPECT(p.how == PROC_KILLED && p.code == SIGKILL && !p.timed_out);
    call_done(&c);
    EXPECT(host_runs_none(&h, "sleep"));
    host_stop(&h);
}

TEST(time_limit)
{
    struct agent_host h;
    struct call c;

    host_start(&h);
    uint64_t begin = clock_ns();
    start(&h, &c, PROC_DETACH, 200, "", "",
          "trap '' TERM; echo partial; set -m; sleep 100 & sleep 100; echo more");
    EXPECT(host_wait(&h, &c.ended, AGENT_WAIT_MS));
    EXPECT(clock_ns() - begin >= 200000000u);
    struct process_result p = call_process(&c);
    EXPECT(p.how == PROC_KILLED && p.code == SIGKILL && p.timed_out == 1);
    EXPECT_STR(c.out.buf, "partial\n");
    call_done(&c);
    EXPECT(host_runs_none(&h, "sleep"));
    /* in time */
    start(&h, &c, 0, 60000, "", "", "exit 0");
    EXPECT(host_wait(&h, &c.ended, AGENT_WAIT_MS));
    EXPECT(call_process(&c).timed_out == 0);
    call_done(&c);
    start(&h, &c, 0, UINT64_MAX, "", "", "exit 0");
    EXPECT(host_wait(&h, &c.ended, AGENT_WAIT_MS) && call_process(&c).timed_out == 0);
    call_done(&c);
    host_stop(&h);
}

TEST(more_than_the_agent_keeps)
{
    enum { N = 1023 };
    static struct call flood[N];
    struct agent_host h;
    struct call c;
    char tag[OPS_TAG_MAX + 2];

    host_start(&h);
    for (unsigned i = 0; i < N; i++) {
        call_open(&h, &flood[i], OP_PROCESS_START, "ssuuuUssussu", "user", "", PROC_DETACH, 0u, 0u,
                  (uint64_t)0, "", "", 2u, "sleep", "100", 0u);
        EXPECT(host_wait(&h, &flood[i].started, AGENT_WAIT_MS));
    }
    start(&h, &c, 0, 0, "", "", "exit 4"); /* the last that has room */
    EXPECT(host_wait(&h, &c.ended, AGENT_WAIT_MS) && call_process(&c).code == 4);
    call_done(&c);
    for (unsigned i = 0; i < 2; i++) {
        chan_cancel(h.chan, flood[i].stream);
        EXPECT(host_wait(&h, &flood[i].ended, AGENT_WAIT_MS));
        start(&h, &flood[i], PROC_DETACH, 0, "", "", "exec sleep 100");
        while (!flood[i].started && !flood[i].ended)
            host_wait(&h, &flood[i].started, 10);
    }
    EXPECT(flood[0].started && flood[1].ended && flood[1].status == EAGAIN);

    memset(tag, 't', sizeof(tag));
    tag[OPS_TAG_MAX + 1] = '\0';
    start(&h, &c, 0, 0, tag, "", "exit 0");
    EXPECT(host_wait(&h, &c.ended, AGENT_WAIT_MS) && c.status == EINVAL);
    call_done(&c);
    for (unsigned i = 0; i < N; i++)
        call_done(&flood[i]);
    host_stop(&h);
}

TAP_MAIN
