/* Programs in a sandbox, seen from the host's end of the channel. */
#include "agent_host.h"

/* An address sanitizer keeps what is freed for a while, and below memory is measured. */
__attribute__((visibility("default"))) const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
    return "quarantine_size_mb=1";
}

TEST(output_and_exit_status)
{
    struct agent_host h;
    struct call c;

    host_start(&h);
    shell(&h, &c, "user", "echo out; echo err >&2; exit 7");
    struct process_result p = call_process(&c);
    EXPECT(c.started && c.pid > 1);
    EXPECT_STR(c.out.buf, "out\n");
    EXPECT_STR(c.err.buf, "err\n");
    EXPECT(p.how == PROC_EXITED && p.code == 7);
    EXPECT(p.maxrss > 100000);
    call_done(&c);
    shell(&h, &c, "root", "kill -TERM $$");
    p = call_process(&c);
    EXPECT(p.how == PROC_KILLED && p.code == SIGTERM);
    call_done(&c);
    host_stop(&h);
}

TEST(users_and_environment)
{
    struct agent_host h;
    struct call c;

    host_start(&h);
    EXPECT_STR(shell_says(&h, "user",
                          "id -u; id -g; id -G; pwd; env | sort | grep -v ^_ | grep -v ^SHLVL"),
               "1000\n1000\n1000\n/home/user\nHOME=/home/user\nLANG=C.UTF-8\nLOGNAME=user\n"
               "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin\nPWD=/home/user\n"
               "SHELL=/bin/bash\nUSER=user\n");
    EXPECT_STR(shell_says(&h, "root", "id -u; id -G; pwd; echo $HOME; umask"),
               "0\n0\n/root\n/root\n0022\n");
    CALL(&h, &c, OP_PROCESS_START, "ssuuuUssussuss", "user", "/tmp", 0u, 0u, 0u, (uint64_t)0, "",
         "", 2u, "printenv", "HOME", 2u, "HOME=/elsewhere", "X=1");
    EXPECT_STR(c.out.buf, "/elsewhere\n");
    call_done(&c);
    host_stop(&h);
}

TEST(refused_with_a_reason)
{
    static const struct {
        const char *user, *cwd, *program, *reason;
        int status;
    } cases[] = {
        {"user", "", "no-such-program", "not found in PATH inside the sandbox", ENOENT},
        {"user", "", "/no/such", "no such file inside the sandbox", ENOENT},
        {"user", "", "/etc/passwd", "permission denied", EACCES},
        {"user", "", "", "the command is empty", EINVAL},
        {"user", "/no/such/dir", "true", "cannot use as working directory '/no/such/dir'", ENOENT},
        {"user", "/root/x", "true", "cannot use as working directory", EACCES},
        {"user", "/proc/self/fd/3", "true", "cannot use as working directory", ELOOP},
        {"root", "/proc/1/cwd", "true", "cannot use as working directory", ELOOP},
        {"root", "/proc/1", "true", "cannot use as working directory", EACCES},
        {"no-one", "", "true", "no user 'no-one'", EUSERS},
        {"../root", "", "true", "no user", EUSERS},
    };
    struct agent_host h;
    struct call c;

    host_start(&h);
    shell_says(&h, "root", "chmod 700 /root; mkdir /root/x");
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        CALL(&h, &c, OP_PROCESS_START, "ssuuuUssusu", cases[i].user, cases[i].cwd, 0u, 0u, 0u,
             (uint64_t)0, "", "", 1u, cases[i].program, 0u);
        EXPECT(!c.started);
        EXPECT(c.status == cases[i].status);
        EXPECT(strstr(c.message, cases[i].reason));
        if (c.status != cases[i].status || !strstr(c.message, cases[i].reason))
            printf("# case %zu: %d %s\n", i, c.status, c.message);
        call_done(&c);
    }
    CALL(&h, &c, OP_PROCESS_START, "ssuuuUssusus", "user", "", 0u, 0u, 0u, (uint64_t)0, "", "", 1u,
         "true", 1u, "NOVALUE");
    EXPECT(c.status == EINVAL && strstr(c.message, "NAME=VALUE"));
    call_done(&c);
    CALL(&h, &c, OP_PROCESS_START, "ss", "user", "");
    EXPECT(c.status == EINVAL);
    call_done(&c);
    /* a directory that its owner may enter and the other user may not */
    CALL(&h, &c, OP_PROCESS_START, "ssuuuUssusu", "root", "/root/x", 0u, 0u, 0u, (uint64_t)0, "",
         "", 1u, "pwd", 0u);
    EXPECT_STR(c.out.buf, "/root/x\n");
    call_done(&c);
    host_stop(&h);
}

TEST(programs_are_confined)
{
    static const char status[] = "grep -E '^(Cap(Inh|Prm|Eff|Bnd|Amb)|NoNewPrivs|Seccomp):' "
                                 "/proc/self/status | tr -d '\\t'";
    struct agent_host h;

    host_start(&h);
    EXPECT_STR(shell_says(&h, "user", status),
               "CapInh:0000000000000000\nCapPrm:0000000000000000\nCapEff:0000000000000000\n"
               "CapBnd:00000000000404fb\nCapAmb:0000000000000000\nNoNewPrivs:1\nSeccomp:2\n");
    EXPECT_STR(shell_says(&h, "root", status),
               "CapInh:0000000000000000\nCapPrm:00000000000404fb\nCapEff:00000000000404fb\n"
               "CapBnd:00000000000404fb\nCapAmb:0000000000000000\nNoNewPrivs:1\nSeccomp:2\n");
    EXPECT_STR(shell_says(&h, "user",
                          "ulimit -c; ulimit -n; ulimit -Hn; ulimit -s; ulimit -l; "
                          "ulimit -u; ulimit -f; cat /proc/self/oom_score_adj"),
               "0\n1024\n4096\n8192\n64\n4160\n65536\n1000\n");
    EXPECT_STR(
        shell_says(&h, "root", "cd /proc/self/fd; for f in *; do [ -e $f ] && echo $f; done; true"),
        "0\n1\n2\n");
    EXPECT_STR(shell_says(&h, "user", "echo through the door > /dev/stdout"), "through the door\n");
    EXPECT_STR(
        shell_says(&h, "user", "trap; cat /proc/self/status | grep -E 'Sig(Blk|Ign)' | cut -f2"),
        "0000000000000000\n0000000000000000\n");
    host_stop(&h);
}

TEST(agent_cannot_be_touched_from_inside)
{
    static const char *const users[] = {"user", "root"};
    struct agent_host h;
    struct call c;

    host_start(&h);
    for (size_t i = 0; i < 2; i++) {
        shell(
            &h, &c, users[i],
            "for f in mem maps environ fd/3 root cwd exe; do "
            "cat /proc/1/$f >/dev/null 2>&1 && echo $f; readlink /proc/1/$f && echo $f; done; "
            "grep Uid /proc/1/status; kill -KILL 1; kill -STOP 1; kill -TERM 1; kill -9 -1; true");
        EXPECT_STR(c.out.buf, "Uid:\t65535\t65535\t65535\t65535\n");
        call_done(&c);
        shell(&h, &c, users[i], "cat /proc/1/maps");
        EXPECT_STR(c.out.buf, "");
        call_done(&c);
        EXPECT_STR(shell_says(&h, users[i], "grep Uid /proc/1/status | tr '\\t' ' '"),
                   "Uid: 65535 65535 65535 65535\n");
    }
    CALL(&h, &c, OP_PING, "");
    EXPECT(c.status == 0);
    call_done(&c);
    host_stop(&h);
}

TEST(standard_input)
{
    enum { SIZE = 1000000 };
    struct agent_host h;
    struct call c;
    char *data = malloc(SIZE);

    host_start(&h);
    for (size_t i = 0; i < SIZE; i++)
        data[i] = (char)(i * 7 % 251);
    shell_open(&h, &c, "user", PROC_STDIN, "cat");
    for (size_t at = 0; at < SIZE;) {
        size_t n = chan_credit(c.stream);
        bool never = false;

        n = n < SIZE - at ? n : SIZE - at;
        n = n < FRAME_PAYLOAD_MAX ? n : FRAME_PAYLOAD_MAX;
        if (n > 0)
            chan_send(h.chan, c.stream, CHAN_STDIN, data + at, n);
        at += n;
        host_wait(&h, &never, n > 0 ? 0 : 10);
    }
    chan_eof(h.chan, c.stream);
    EXPECT(host_wait(&h, &c.ended, AGENT_WAIT_MS));
    EXPECT(c.out.len == SIZE && memcmp(c.out.buf, data, SIZE) == 0);
    call_done(&c);

    /* a program that does not read must not keep the host's credit */
    shell_open(&h, &c, "user", PROC_STDIN, "exec <&-; sleep 0.3; echo done");
    for (size_t sent = 0; sent < SIZE && !c.ended;) {
        size_t n = chan_credit(c.stream);
        bool never = false;

        n = n < FRAME_PAYLOAD_MAX ? n : FRAME_PAYLOAD_MAX;
        if (n > 0)
            chan_send(h.chan, c.stream, CHAN_STDIN, data, n);
        sent += n;
        host_wait(&h, &never, 5);
    }
    EXPECT(host_wait(&h, &c.ended, AGENT_WAIT_MS));
    EXPECT_STR(c.out.buf, "done\n");
    call_done(&c);
    EXPECT_STR(shell_says(&h, "user", "cat; echo empty"), "empty\n");
    free(data);
    host_stop(&h);
}

TEST(signals)
{
    struct agent_host h;
    struct call c, s;
    uint8_t term[4] = {SIGTERM, 0, 0, 0};

    host_start(&h);
    shell_open(&h, &c, "user", 0,
               "trap 'echo caught; exit 3' TERM; echo ready; while :; do sleep 0.05; done");
    EXPECT(host_wait(&h, &c.started, AGENT_WAIT_MS));
    while (c.out.len == 0)
        host_wait(&h, &c.ended, 10);
    CALL(&h, &s, OP_PROCESS_LIST, "");
    struct wire_reader r;
    wire_reader_init(&r, s.result.buf, s.result.len);
    EXPECT(wire_get_u32(&r) == 1 && wire_done(&r));
    wire_reader_init(&r, s.out.buf, s.out.len);
    EXPECT(wire_get_u32(&r) == c.pid);
    EXPECT_STR(wire_get_str(&r, 100), "user");
    EXPECT_STR(wire_get_str(&r, 100), "");
    EXPECT_STR(wire_get_str(&r, 100), "");
    EXPECT(strstr(wire_get_str(&r, 4096), "/bin/bash -c trap"));
    EXPECT(wire_done(&r));
    call_done(&s);
    CALL(&h, &s, OP_PROCESS_SIGNAL, "usu", c.pid, "", (uint32_t)SIGTERM);
    EXPECT(s.status == 0);
    call_done(&s);
    EXPECT(host_wait(&h, &c.ended, AGENT_WAIT_MS));
    EXPECT_STR(c.out.buf, "ready\ncaught\n");
    EXPECT(call_process(&c).code == 3);
    uint32_t old = c.pid;
    call_done(&c);

    const uint32_t bad[] = {1, 0, 2, UINT32_MAX, (uint32_t)-1000, old};
    for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
        CALL(&h, &s, OP_PROCESS_SIGNAL, "usu", bad[i], "", (uint32_t)SIGKILL);
        EXPECT(s.status == ESRCH);
        call_done(&s);
    }

    shell_open(&h, &c, "user", 0, "sleep 100 & echo ready; wait");
    while (c.out.len == 0)
        host_wait(&h, &c.ended, 10);
    CALL(&h, &s, OP_PROCESS_SIGNAL, "usu", c.pid, "", 65u);
    EXPECT(s.status == EINVAL);
    call_done(&s);
    chan_control(h.chan, c.stream, CONTROL_SIGNAL, term, sizeof(term));
    EXPECT(host_wait(&h, &c.ended, 3000));
    EXPECT(call_process(&c).code == SIGTERM);
    call_done(&c);
    EXPECT(host_runs_none(&h, "sleep"));
    host_stop(&h);
}

TEST(cancel_kills_the_session)
{
    struct agent_host h;
    struct call c;

    host_start(&h);
    /* -m gives each job a process group of its own */
    shell_open(&h, &c, "user", 0,
               "set -m; trap '' TERM HUP; sleep 100 & sleep 101 & echo partial; wait");
    while (c.out.len == 0)
        host_wait(&h, &c.ended, 10);
    chan_cancel(h.chan, c.stream);
    EXPECT(host_wait(&h, &c.ended, AGENT_WAIT_MS));
    struct process_result p = call_process(&c);
    EXPECT(p.how == PROC_KILLED && p.code == SIGKILL);
    EXPECT_STR(c.out.buf, "partial\n");
    call_done(&c);
    EXPECT(host_runs_none(&h, "sleep"));
    host_stop(&h);
}

/* ---- the memory limit ------------------------------------------------------------------------ */

#define GROUP    "/tmp/group"
#define COUNT_V2 "printf 'low 0\\noom %u\\noom_kill %u\\n' >" GROUP "/memory.events; "
#define COUNT_V1                                                  \
    "echo %u000000 >" GROUP "/memory/memory.max_usage_in_bytes; " \
    "printf 'under_oom 0\\noom_kill %u\\n' >" GROUP "/memory/memory.oom_control; "
#define LIMIT (512ull << 20)

/* What the group tells while the program runs: whether the limit was reached, how often Linux killed. */
static const struct {
    bool full;
    unsigned kills;
    const char *end;
    uint64_t limit;
    uint32_t how, code;
} memory_ends[] = {
    {true, 1, "kill -9 $$", LIMIT, PROC_KILLED, SIGKILL},
    {false, 0, "kill -9 $$", 0, PROC_KILLED, SIGKILL},
    {false, 1, "kill -9 $$", 0, PROC_KILLED, SIGKILL}, /* the machine had no more memory */
    {true, 0, "kill -9 $$", 0, PROC_KILLED, SIGKILL},  /* there was enough to give back */
    {true, 1, "kill -TERM $$", 0, PROC_KILLED, SIGTERM},
    {true, 1, "exit 1", 0, PROC_EXITED, 1},
    {true, 1, "bash -c 'kill -9 $$'; exit $?", LIMIT, PROC_EXITED, 137},
};

/* v1 has a peak, of megabytes here; v2 counts. */
static int count_memory(char *script, size_t size, bool v1, unsigned full, unsigned kills)
{
    return snprintf(script, size, v1 ? COUNT_V1 : COUNT_V2, full, kills);
}

static void memory_group(struct agent_host *h, struct view_fds *view, bool v1)
{
    *view = (struct view_fds)VIEW_NONE;
    view->v1 = v1;
    view->groups = GROUP;
    host_view = view;
    host_start(h);
    host_view = NULL;
    shell_says(h, "root",
               "mkdir -p " GROUP "/memory; echo 536870912 | tee " GROUP "/memory.max >" GROUP
               "/memory/memory.limit_in_bytes");
}

TEST(the_memory_limit_is_named_as_the_end_if_it_was)
{
    struct agent_host h;
    struct view_fds view;
    struct call c;
    char script[512];

    for (int v1 = 0; v1 < 2; v1++) {
        unsigned full = 3, kills = 2;

        memory_group(&h, &view, v1);
        count_memory(script, sizeof(script), v1, full, kills);
        shell_says(&h, "root", script);
        for (size_t i = 0; i < ARRAY_SIZE(memory_ends); i++) {
            full = v1 ? (memory_ends[i].full ? 536 : 400) : full + memory_ends[i].full;
            kills += memory_ends[i].kills;
            int n = count_memory(script, sizeof(script), v1, full, kills);
            snprintf(script + n, sizeof(script) - (size_t)n, "%s", memory_ends[i].end);
            shell(&h, &c, "root", script);
            struct process_result p = call_process(&c);
            EXPECT(p.how == memory_ends[i].how && p.code == memory_ends[i].code);
            EXPECT(p.memory_limit == memory_ends[i].limit);
            call_done(&c);
        }
        host_stop(&h);
    }
}

/* It counts for the one that died of it, not for one that somebody kills later. */
TEST(one_kill_for_memory_is_the_end_of_one_process)
{
    struct agent_host h;
    struct view_fds view;
    struct call first, second, third;
    char script[512];

    memory_group(&h, &view, false);
    snprintf(script, sizeof(script), COUNT_V2, 0u, 0u);
    shell_says(&h, "root", script);
    shell_open(&h, &first, "root", PROC_STDIN, "read; kill -9 $$");
    shell_open(&h, &third, "root", PROC_STDIN, "read; sleep 100");
    EXPECT(host_wait(&h, &first.started, AGENT_WAIT_MS));
    EXPECT(host_wait(&h, &third.started, AGENT_WAIT_MS));
    snprintf(script, sizeof(script), COUNT_V2 "kill -9 $$", 1u, 1u);
    shell(&h, &second, "root", script);
    EXPECT(call_process(&second).memory_limit == LIMIT);
    chan_send(h.chan, first.stream, CHAN_STDIN, "\n", 1);
    EXPECT(host_wait(&h, &first.ended, AGENT_WAIT_MS));
    EXPECT(call_process(&first).how == PROC_KILLED && call_process(&first).memory_limit == 0);

    /* Nor for one that the host kills. */
    snprintf(script, sizeof(script), COUNT_V2, 2u, 2u);
    shell_says(&h, "root", script);
    chan_cancel(h.chan, third.stream);
    EXPECT(host_wait(&h, &third.ended, AGENT_WAIT_MS));
    EXPECT(call_process(&third).how == PROC_KILLED && call_process(&third).memory_limit == 0);
    call_done(&first);
    call_done(&second);
    call_done(&third);
    host_stop(&h);
}

/* ---- output ---------------------------------------------------------------------------------- */

TEST(background_process_does_not_hold_the_end)
{
    struct agent_host h;
    struct call c;

    host_start(&h);
    shell(&h, &c, "user", "sleep 100 & echo done");
    EXPECT_STR(c.out.buf, "done\n");
    call_done(&c);
    shell(&h, &c, "user", "(while :; do echo more; sleep 0.02; done) & echo done");
    EXPECT(strstr(c.out.buf, "done\n"));
    call_done(&c);
    /* what was written before the end comes whole, also to a slow host */
    shell_open(&h, &c, "user", 0, "sleep 100 & head -c 600000 /dev/zero");
    c.hold = true;
    bool never = false;
    host_wait(&h, &never, 500);
    EXPECT(!c.ended);
    c.hold = false;
    chan_consumed(h.chan, c.stream, c.held);
    EXPECT(host_wait(&h, &c.ended, AGENT_WAIT_MS));
    EXPECT(c.out.len == 600000);
    call_done(&c);
    host_stop(&h);
}

TEST(terminal)
{
    struct agent_host h;
    struct call c;
    uint8_t size[8] = {40, 0, 0, 0, 100, 0, 0, 0};

    host_start(&h);
    shell_open(&h, &c, "user", PROC_PTY,
               "tty -s && echo terminal $TERM; stty size; trap 'stty size; exit 4' WINCH; "
               "stat -c %U $(tty) >/dev/null; echo ready; while :; do sleep 0.05; done");
    while (!strstr(c.out.buf, "ready"))
        if (host_wait(&h, &c.ended, 10))
            break;
    EXPECT(strstr(c.out.buf, "terminal xterm-256color\r\n24 80\r\n"));
    chan_control(h.chan, c.stream, CONTROL_RESIZE, size, sizeof(size));
    EXPECT(host_wait(&h, &c.ended, AGENT_WAIT_MS));
    EXPECT(strstr(c.out.buf, "40 100\r\n"));
    EXPECT(call_process(&c).code == 4);
    EXPECT(c.err.len == 0);
    call_done(&c);

    shell_open(&h, &c, "root", PROC_PTY, "echo ready; sleep 100");
    while (!strstr(c.out.buf, "ready"))
        if (host_wait(&h, &c.ended, 10))
            break;
    chan_send(h.chan, c.stream, CHAN_STDIN, "\003", 1); /* ^C */
    EXPECT(host_wait(&h, &c.ended, AGENT_WAIT_MS));
    EXPECT(call_process(&c).code == SIGINT);
    call_done(&c);

    shell_open(&h, &c, "user", PROC_PTY, "cat; echo over");
    chan_send(h.chan, c.stream, CHAN_STDIN, "line\n", 5);
    chan_eof(h.chan, c.stream);
    EXPECT(host_wait(&h, &c.ended, AGENT_WAIT_MS));
    EXPECT(strstr(c.out.buf, "line\r\n") && strstr(c.out.buf, "over\r\n"));
    call_done(&c);
    host_stop(&h);
}

static long agent_rss_kib(struct agent_host *h)
{
    return strtol(shell_says(h, "user", "grep VmRSS /proc/1/status | tr -dc 0-9"), NULL, 10);
}

TEST(slow_host_bounds_memory)
{
    enum { N = 100, LIMIT_KIB = 16 * 1024 };
    static struct call flood[N];
    struct agent_host h;
    bool never = false;

    host_start(&h);
    long before_kib = agent_rss_kib(&h);
    for (int i = 0; i < N; i++) {
        shell_open(&h, &flood[i], "user", 0, "exec yes");
        flood[i].hold = true;
        EXPECT(host_wait(&h, &flood[i].started, AGENT_WAIT_MS));
    }
    host_wait(&h, &never, 1000);
    long grown_kib = agent_rss_kib(&h) - before_kib; /* 50 MiB if every stream were filled */
    EXPECT(grown_kib < LIMIT_KIB);
    if (grown_kib >= LIMIT_KIB)
        printf("# the agent grew by %ld KiB\n", grown_kib);
    for (int i = 0; i < N; i++) {
        EXPECT(flood[i].out.len <= CHAN_WINDOW && flood[i].out.len > 0);
        chan_cancel(h.chan, flood[i].stream);
    }
    for (int i = 0; i < N; i++) {
        EXPECT(host_wait(&h, &flood[i].ended, AGENT_WAIT_MS));
        call_done(&flood[i]);
    }
    host_stop(&h);
}

TEST(discarded_output_is_counted)
{
    struct agent_host h;
    struct call c;
    uint8_t out[4] = {CHAN_STDOUT, 0, 0, 0};

    host_start(&h);
    shell_open(&h, &c, "user", 0, "head -c 20000000 /dev/zero; echo end >&2");
    c.hold = true;
    while (c.out.len < CHAN_WINDOW && !c.ended)
        host_wait(&h, &c.ended, 10);
    chan_control(h.chan, c.stream, CONTROL_DISCARD, out, sizeof(out));
    c.hold = false;
    chan_consumed(h.chan, c.stream, c.held);
    EXPECT(host_wait(&h, &c.ended, AGENT_WAIT_MS));
    struct process_result p = call_process(&c);
    EXPECT(p.dropped_out > 0 && p.dropped_out + c.out.len == 20000000);
    EXPECT_STR(c.err.buf, "end\n");
    call_done(&c);
    host_stop(&h);
}

TEST(orphans_are_reaped)
{
    struct agent_host h;

    host_start(&h);
    EXPECT_STR(shell_says(&h, "user",
                          "for i in {1..1000}; do (true &) ; done; sleep 0.5; "
                          "grep -l 'State:.Z' /proc/[0-9]*/status 2>/dev/null | wc -l"),
               "0\n");
    host_stop(&h);
}

TEST(disk_is_reported)
{
    struct agent_host h;
    struct call c;

    host_start(&h);
    shell(&h, &c, "user", "true");
    EXPECT(call_process(&c).disk_used > 0); /* of whatever "/" is here */
    call_done(&c);
    host_stop(&h);
}

TAP_MAIN
