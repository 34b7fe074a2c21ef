/* Cells in the real kernels, which the agent starts itself. */
#include "agent_kernel.h"

TEST(a_cell_has_output_and_a_result)
{
    struct agent_host h;
    struct call c;

    host_start(&h);
    cell_open(&h, &c, "", "", 0, "import sys\nprint('a')\nprint('b', file=sys.stderr)\n6 * 7");
    struct cell_end end = cell_wait(&h, &c);
    EXPECT(end.how == KERNEL_DONE && end.code == 0 && end.timed_out == 0);
    EXPECT_STR(c.events.buf, "1:\n");
    EXPECT_STR(c.out.buf, "a\n");
    EXPECT_STR(c.err.buf, "b\n");
    EXPECT(strstr(c.story.buf, "kRm\nkTtext=42\nkr\n"));
    call_done(&c);
    EXPECT_STR(cell_story(&h, "x = 5"), "");
    cell_open(&h, &c, "", "Py", 0, "print(x)");
    EXPECT(cell_wait(&h, &c).how == KERNEL_DONE);
    EXPECT_STR(c.events.buf, "3:\n");
    EXPECT_STR(c.out.buf, "5\n");
    call_done(&c);
    EXPECT(strstr(cell_story(&h, "1 / 0"), "kRe\nkTname=ZeroDivisionError"));
    EXPECT_STR(cell_story(&h, ""), "");
    host_stop(&h);
}

/* Programs that a cell starts, threads, and a control socket that none of them gets. */
TEST(output_of_everybody_comes_before_the_end)
{
    struct agent_host h;
    struct call c;

    host_start(&h);
    EXPECT(cell_in(&h, &c, "", "",
                   "import subprocess\n"
                   "p = subprocess.run('echo sub; ls /proc/self/fd | wc -l', shell=1)") ==
           KERNEL_DONE);
    EXPECT_STR(c.out.buf, "sub\n4\n");
    call_done(&c);
    cell_open(&h, &c, "", "", 0, "import os\nfor i in range(300): os.write(1, b'x' * 70000)");
    EXPECT(cell_wait(&h, &c).how == KERNEL_DONE && c.out.len == 21000000);
    call_done(&c);
    host_stop(&h);
}

TEST(environments)
{
    struct agent_host h;
    struct call c;
    const char *code = "import os\nprint(*(os.environ.get(k) for k in"
                       " ('HOME', 'USER', 'A', 'B', 'PWD')), os.getcwd(), flush=True)";

    host_start(&h);
    call_open(&h, &c, OP_KERNEL_EXECUTE, "ssUussus", "", "", (uint64_t)0, 2u, "A=1", "PWD=/x", 1u,
              "B=2");
    cell_send(&h, &c, code);
    EXPECT(cell_wait(&h, &c).how == KERNEL_DONE);
    EXPECT_STR(c.out.buf, "/home/user user 1 2 /x /home/user\n");
    call_done(&c);
    /* the kernel is there: what it would be started with does not matter any more */
    call_open(&h, &c, OP_KERNEL_EXECUTE, "ssUusus", "", "", (uint64_t)0, 1u, "A=3", 1u, "C=2");
    cell_send(&h, &c, code);
    EXPECT(cell_wait(&h, &c).how == KERNEL_DONE);
    EXPECT_STR(c.out.buf, "/home/user user 1 None /x /home/user\n");
    call_done(&c);
    host_stop(&h);
}

TEST(cells_run_in_order)
{
    struct agent_host h;
    struct call first, later[3];
    char code[64];

    host_start(&h);
    open_forever(&h, &first, "", 0);
    for (int i = 0; i < 3; i++) {
        snprintf(code, sizeof(code), "print(%d)", i);
        cell_open(&h, &later[i], "", "", 0, code);
    }
    EXPECT(!host_wait(&h, &later[0].executing, 100));
    chan_cancel(h.chan, later[1].stream);
    EXPECT(host_wait(&h, &later[1].ended, AGENT_WAIT_MS) && later[1].status == ECANCELED);
    chan_cancel(h.chan, first.stream);
    EXPECT(host_wait(&h, &later[2].ended, AGENT_WAIT_MS) && later[0].ended);
    EXPECT_STR(later[0].events.buf, "2:\n");
    EXPECT_STR(later[0].out.buf, "0\n");
    EXPECT_STR(later[1].events.buf, "");
    EXPECT_STR(later[2].events.buf, "3:\n");
    EXPECT_STR(later[2].out.buf, "2\n");
    for (int i = 0; i < 3; i++)
        call_done(&later[i]);
    call_done(&first);
    host_stop(&h);
}

TEST(interrupts)
{
    struct agent_host h;
    struct call c;
    char id[KERNEL_ID_LEN + 1];

    host_start(&h);
    EXPECT_STR(cell_story(&h, "kept = 7"), "");
    default_id(&h, "python", id);
    EXPECT(kernel_op(&h, OP_KERNEL_INTERRUPT, id) == 0); /* nothing runs */

    open_forever(&h, &c, "", 0);
    EXPECT_STR(context_line(&h, id), "python /home/user 3 2 1");
    EXPECT(kernel_op(&h, OP_KERNEL_INTERRUPT, id) == 0);
    struct cell_end end = cell_wait(&h, &c);
    EXPECT(end.how == KERNEL_DONE && end.timed_out == 0);
    EXPECT(strstr(c.story.buf, "kTname=KeyboardInterrupt"));
    call_done(&c);

    open_forever(&h, &c, "", 200);
    end = cell_wait(&h, &c);
    EXPECT(end.how == KERNEL_DONE && end.timed_out == 1);
    EXPECT(strstr(c.story.buf, "kTname=KeyboardInterrupt"));
    call_done(&c);

    /* over for the host at once, and nothing of it comes to the next */
    open_forever(&h, &c, "", 0);
    chan_cancel(h.chan, c.stream);
    EXPECT(host_wait(&h, &c.ended, AGENT_WAIT_MS) && c.status == ECANCELED);
    call_done(&c);
    EXPECT_STR(cell_story(&h, "print(kept)"), "17\n\n");
    host_stop(&h);
}

TEST(the_loss_of_the_channel_interrupts)
{
    struct agent_host h;
    struct call c, other;

    host_start_line(&h);
    EXPECT_STR(cell_story(&h, "kept = 8"), "");
    open_forever(&h, &c, "", 0);
    cell_open(&h, &other, "", "", 0, "print('never')");
    host_connect(&h);
    call_done(&c);
    call_done(&other);
    cell_open(&h, &c, "", "", 0, "print(kept)");
    EXPECT(cell_wait(&h, &c).how == KERNEL_DONE);
    EXPECT_STR(c.events.buf, "3:\n");
    EXPECT_STR(c.story.buf, "18\n\n");
    call_done(&c);
    host_stop(&h);
}

TEST(a_cell_that_does_not_stop)
{
    static const char deaf[] = "import signal\nsignal.pthread_sigmask(0, [2])\n"
                               "print('on', flush=True)\n" FOREVER;
    struct agent_host h;
    struct call c, next;
    char id[KERNEL_ID_LEN + 1];

    host_start(&h);
    cell_open(&h, &c, "", "", 500, deaf);
    EXPECT(host_wait_output(&h, &c, "on\n"));
    cell_open(&h, &next, "", "", 0, "print('next')");
    struct cell_end end = cell_wait(&h, &c);
    EXPECT(end.how == KERNEL_STUCK && end.timed_out == 1);
    EXPECT(cell_wait(&h, &next).how == KERNEL_DONE);
    EXPECT_STR(next.events.buf, "1:\n");
    EXPECT_STR(next.out.buf, "next\n");
    call_done(&c);
    call_done(&next);

    /* with nobody there to be told, the next one is */
    context_create(&h, "", "", id);
    cell_open(&h, &c, id, "", 0, deaf);
    EXPECT(host_wait_output(&h, &c, "on\n"));
    chan_cancel(h.chan, c.stream);
    EXPECT(host_wait(&h, &c.ended, AGENT_WAIT_MS));
    call_done(&c);
    cell_open(&h, &c, id, "", 0, "");
    EXPECT(cell_wait(&h, &c).how == KERNEL_DONE);
    EXPECT_STR(c.events.buf,
               "1:the kernel did not stop when it was interrupted, and was killed: its "
               "variables are gone\n");
    call_done(&c);
    host_stop(&h);
}

TEST(a_kernel_that_dies)
{
    static const struct {
        const char *code;
        uint32_t status;
    } deaths[] = {
        {"import os\nprint('last words', flush=True)\nos._exit(3)", 3},
        {"import os\nprint('last words', flush=True)\nos.kill(os.getpid(), 9)", 137},
        {"import os\nprint('last words', flush=True)\nos.execv('/bin/sleep', ['sleep', '99'])",
         137},
        {"import os\nprint('last words', flush=True)\nos.closerange(0, 1024)\n" FOREVER, 137},
    };
    struct agent_host h;
    struct call c;

    host_start(&h);
    for (size_t i = 0; i < ARRAY_SIZE(deaths); i++) {
        cell_open(&h, &c, "", "", 0, deaths[i].code);
        struct cell_end end = cell_wait(&h, &c);
        EXPECT(end.how == KERNEL_DIED && end.code == deaths[i].status);
        EXPECT_STR(c.out.buf, "last words\n");
        call_done(&c);
        cell_open(&h, &c, "", "", 0, "print('again')");
        EXPECT(cell_wait(&h, &c).how == KERNEL_DONE);
        EXPECT_STR(c.events.buf, "1:\n"); /* that it died was told */
        EXPECT_STR(c.out.buf, "again\n");
        call_done(&c);
    }
    host_stop(&h);
}

TEST(a_kernel_that_dies_of_the_memory_limit)
{
    struct view_fds view = VIEW_NONE;
    struct agent_host h;
    struct call c;

    view.groups = "/tmp";
    host_view = &view;
    host_start(&h);
    host_view = NULL;
    cell_open(&h, &c, "", "", 0,
              "import os\nopen('/tmp/memory.max', 'w').write('67108864\\n')\n"
              "open('/tmp/memory.events', 'w').write('oom 1\\noom_kill 1\\n')\n"
              "os.kill(os.getpid(), 9)");
    struct cell_end end = cell_wait(&h, &c);
    EXPECT(end.how == KERNEL_DIED && end.code == 137 && end.memory_limit == 64u << 20);
    call_done(&c);
    cell_open(&h, &c, "", "", 0, "import os\nos.kill(os.getpid(), 9)");
    end = cell_wait(&h, &c);
    EXPECT(end.how == KERNEL_DIED && end.code == 137 && end.memory_limit == 0);
    call_done(&c);
    host_stop(&h);
}

TEST(a_kernel_that_dies_between_cells)
{
    struct agent_host h;
    struct call c;
    char id[KERNEL_ID_LEN + 1];

    host_start(&h);
    EXPECT_STR(cell_story(&h, "x = 1"), "");
    default_id(&h, "python", id);
    EXPECT_STR(shell_says(&h, "user", "pkill -9 python3 && echo killed"), "killed\n");
    EXPECT(wait_state(&h, id, KERNEL_ABSENT));
    cell_open(&h, &c, "", "", 0, "print('x' in globals())");
    EXPECT(cell_wait(&h, &c).how == KERNEL_DONE);
    EXPECT_STR(c.events.buf, "1:the kernel ended between two cells: its variables are gone\n");
    EXPECT_STR(c.out.buf, "False\n");
    call_done(&c);
    cell_open(&h, &c, "", "", 0, "");
    EXPECT(cell_wait(&h, &c).how == KERNEL_DONE);
    EXPECT_STR(c.events.buf, "2:\n"); /* once */
    call_done(&c);
    host_stop(&h);
}

TEST(a_slow_host_holds_the_kernel_only)
{
    struct agent_host h;
    struct call c, other;
    char id[KERNEL_ID_LEN + 1];
    bool never = false;

    host_start(&h);
    context_create(&h, "", "", id);
    cell_open(&h, &c, id, "", 0, "import os\nwhile True: os.write(1, b'x' * 50000)");
    c.hold = true;
    EXPECT(host_wait(&h, &c.executing, AGENT_WAIT_MS));
    for (int i = 0; i < 100 && c.out.len <= CHAN_WINDOW - 128 * 1024; i++)
        host_wait(&h, &never, 100);
    host_wait(&h, &never, 300); /* for more, which must not come */
    EXPECT(c.out.len <= CHAN_WINDOW && c.out.len > CHAN_WINDOW - 128 * 1024);
    EXPECT_STR(cell_story(&h, "print('quick')"), "1quick\n\n");

    /* One that has stopped is not killed because the host does not listen. */
    EXPECT(kernel_op(&h, OP_KERNEL_INTERRUPT, id) == 0);
    host_wait(&h, &c.ended, 5500);
    EXPECT(!c.ended);
    c.hold = false;
    chan_consumed(h.chan, c.stream, c.held);
    EXPECT(cell_wait(&h, &c).how == KERNEL_DONE);
    EXPECT(strstr(c.story.buf, "KeyboardInterrupt") || c.story.truncated);
    call_done(&c);

    /* nor is one whose listener goes away held for ever */
    cell_open(&h, &c, id, "", 0, "import os\nwhile True: os.write(1, b'x' * 50000)");
    c.hold = true;
    EXPECT(host_wait(&h, &c.executing, AGENT_WAIT_MS));
    host_wait(&h, &never, 100);
    chan_cancel(h.chan, c.stream);
    EXPECT(host_wait(&h, &c.ended, AGENT_WAIT_MS) && c.status == ECANCELED);
    call_done(&c);
    EXPECT(cell_in(&h, &other, id, "", "print('free')") == KERNEL_DONE);
    EXPECT_STR(other.events.buf, "3:\n");
    EXPECT_STR(other.out.buf, "free\n");
    call_done(&other);
    host_stop(&h);
}

TEST(output_between_cells_waits_for_the_next)
{
    struct agent_host h;
    struct call c;

    host_start(&h);
    EXPECT(strcmp(cell_story(&h, "import subprocess, os\n"
                                 "p = subprocess.Popen('until [ -e /tmp/go ]; do sleep 0.01; done;"
                                 "head -c 200000 /dev/zero; touch /tmp/done', shell=True)"),
                  "") == 0);
    EXPECT_STR(shell_says(&h, "user",
                          "touch /tmp/go; until [ -e /tmp/done ]; do sleep 0.01; done; echo ok"),
               "ok\n");
    cell_open(&h, &c, "", "", 0, "");
    EXPECT(cell_wait(&h, &c).how == KERNEL_DONE && c.out.len == 65536);
    call_done(&c);
    host_stop(&h);
}

TEST(long_code)
{
    struct agent_host h;
    struct call c;
    AUTO(strbuf_done) struct strbuf code = {0};
    static char spaces[100000];
    bool never = false;

    host_start(&h);
    strbuf_init(&code, 32u << 20);
    strbuf_addstr(&code, "x = '");
    for (int i = 0; i < 1000000; i++)
        strbuf_addch(&code, (char)('a' + i % 26));
    strbuf_addstr(&code, "'; print(len(x), x[999999])");
    call_open(&h, &c, OP_KERNEL_EXECUTE, "ssUuu", "", "", (uint64_t)0, 0u, 0u);
    for (size_t at = 0, n; at < code.len; at += n) {
        n = chan_credit(c.stream) < code.len - at ? chan_credit(c.stream) : code.len - at;
        chan_send(h.chan, c.stream, 0, code.buf + at, n);
        host_wait(&h, &never, 1);
    }
    chan_eof(h.chan, c.stream);
    EXPECT(cell_wait(&h, &c).how == KERNEL_DONE);
    EXPECT_STR(c.out.buf, "1000000 n\n");
    call_done(&c);

    /* and too long a one */
    memset(spaces, ' ', sizeof(spaces));
    call_open(&h, &c, OP_KERNEL_EXECUTE, "ssUuu", "", "", (uint64_t)0, 0u, 0u);
    for (size_t sent = 0; !c.ended && sent <= KERNEL_CODE_MAX + sizeof(spaces);) {
        size_t n = chan_credit(c.stream) < sizeof(spaces) ? chan_credit(c.stream) : sizeof(spaces);

        if (n > 0)
            chan_send(h.chan, c.stream, 0, spaces, n);
        sent += n;
        host_wait(&h, &c.ended, 1);
    }
    EXPECT(host_wait(&h, &c.ended, AGENT_WAIT_MS) && c.status == E2BIG);
    call_done(&c);
    host_stop(&h);
}

TAP_MAIN
