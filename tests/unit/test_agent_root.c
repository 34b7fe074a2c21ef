/* Another root directory under an agent and all that runs in it. */
#include "agent_peer.h"
#include "agent_root.h"

#define MOUNTS "cut -d' ' -f4-6 /proc/self/mountinfo | sort"

static void expect_markers(struct agent_host *h, const char *marker)
{
    char expected[256];

    snprintf(expected, sizeof(expected), "%s\n%s\n%s\n%s\n", marker, marker, marker, marker);
    EXPECT_STR(shell_says(h, "user",
                          "cd /; for i in . usr/local dev/shm home/user; do cat $i/marker; "
                          "echo; done"),
               expected);
}

/* Cells are held while it moves, and nothing may have been started since. */
static int move(struct agent_host *h, int root)
{
    struct call c;
    int r;

    call_open(h, &c, OP_KERNEL_HOLD, "U", (uint64_t)0);
    EXPECT(host_wait(h, &c.started, AGENT_WAIT_MS));
    r = root_send(h, root, 0);
    chan_cancel(h->chan, c.stream);
    EXPECT(host_wait(h, &c.ended, AGENT_WAIT_MS));
    call_done(&c);
    return r;
}

TEST(everything_moves)
{
    struct agent_host h;
    struct call c;
    char before[65536];

    host_start_rooted(&h, "one");
    expect_markers(&h, "one");
    snprintf(before, sizeof(before), "%s", shell_says(&h, "root", MOUNTS));
    EXPECT(strstr(before, "/dev/pts") && strstr(before, "/proc/sys"));
    /* one whose working directory is the root itself */
    shell_open(&h, &c, "root", PROC_STDIN, "cd /; while read x; do cat marker; pwd; done");
    EXPECT(host_wait(&h, &c.started, AGENT_WAIT_MS));
    chan_send(h.chan, c.stream, 0, "x\n", 2);
    EXPECT(host_wait_output(&h, &c, "one/\n"));

    for (int i = 0; i < 3; i++) {
        const char *marker = i & 1 ? "three" : "two";
        EXPECT(move(&h, root_make(marker)) == 0);
        expect_markers(&h, marker);
        EXPECT_STR(shell_says(&h, "root", MOUNTS), before);
        EXPECT_STR(shell_says(&h, "user",
                              "test -w /dev/null && test -c /dev/pts/ptmx && "
                              "! cat /proc/kcore 2>/dev/null && echo $$ >/dev/shm/mine"),
                   "");
        chan_send(h.chan, c.stream, 0, "x\n", 2);
        EXPECT(host_wait_output(&h, &c, i & 1 ? "three/\n" : "two/\n"));
    }
    /* nothing of the old ones is left, nor a way to them */
    EXPECT_STR(shell_says(&h, "root", "cat /../marker; ls -A /oldroot 2>/dev/null; true"), "two");
    chan_eof(h.chan, c.stream);
    EXPECT(host_wait(&h, &c.ended, AGENT_WAIT_MS));
    call_done(&c);
    host_stop(&h);
}

/* Who writes the new root is whoever runs inside: it leads nowhere, and then all is as before. */
TEST(a_root_that_was_tampered_with)
{
    static const struct {
        const char *place, *link; /* NULL: nothing there */
    } bad[] = {{"run/shm", "/etc"}, {"run/shm", "../tmp"},   {"run/shm", NULL},
               {"usr/local", "/"},  {"usr/local", "../tmp"}, {"dev", "tmp"},
               {"proc", NULL}};
    struct agent_host h;
    char before[65536];

    host_start_rooted(&h, "one");
    snprintf(before, sizeof(before), "%s", shell_says(&h, "root", MOUNTS));
    for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
        int root = root_make("two");
        char aside[32];
        snprintf(aside, sizeof(aside), "aside%zu", i);
        EXPECT(renameat(root, bad[i].place, root, aside) == 0);
        if (bad[i].link)
            EXPECT(symlinkat(bad[i].link, root, bad[i].place) == 0);
        EXPECT(move(&h, root) < 0);
        expect_markers(&h, "one");
        EXPECT_STR(shell_says(&h, "root", MOUNTS), before);
    }
    EXPECT(move(&h, root_make("two")) == 0);
    expect_markers(&h, "two");
    host_stop(&h);
}

TEST(not_when_something_was_started_meanwhile)
{
    struct agent_host h;
    struct call c;

    host_start_rooted(&h, "one");
    EXPECT(root_send(&h, root_make("two"), 0) == -EBUSY); /* not held at all */
    call_open(&h, &c, OP_KERNEL_HOLD, "U", (uint64_t)0);
    EXPECT(host_wait(&h, &c.started, AGENT_WAIT_MS));
    EXPECT_STR(shell_says(&h, "user", "cat marker"), "one");
    EXPECT(root_send(&h, root_make("two"), 0) == -EBUSY);
    expect_markers(&h, "one");
    chan_cancel(h.chan, c.stream);
    EXPECT(host_wait(&h, &c.ended, AGENT_WAIT_MS));
    call_done(&c);
    EXPECT(move(&h, root_make("two")) == 0);
    expect_markers(&h, "two");
    host_stop(&h);
}

TEST(not_while_a_file_is_written)
{
    struct agent_host h;
    struct call c;

    host_start_rooted(&h, "one");
    call_open(&h, &c, OP_FILE_WRITE, "ssuuu", "user", "new", 0644u, 0u, 0u);
    chan_send(h.chan, c.stream, 0, "abc", 3);
    EXPECT_STR(shell_says(&h, "user", "cat marker"), "one"); /* the agent has come so far */
    EXPECT(move(&h, root_make("two")) == -EBUSY);
    EXPECT(root_send(&h, root_make("two"), LINE_ROOT_CLEAR) == -EBUSY);
    chan_eof(h.chan, c.stream);
    EXPECT(host_wait(&h, &c.ended, AGENT_WAIT_MS) && c.status == 0);
    call_done(&c);
    EXPECT_STR(shell_says(&h, "user", "cat new"), "abc");
    EXPECT(move(&h, root_make("two")) == 0);
    host_stop(&h);
}

/* A watch goes on in the new root: what happened before is told, what happens later too, and that
 * the root is another one is not. */
TEST(watches_go_on)
{
    struct agent_host h;
    struct call c, other;
    bool never = false;

    host_start_rooted(&h, "one");
    call_open(&h, &c, OP_FILE_WATCH, "ssu", "user", "", FILE_RECURSIVE);
    EXPECT(host_wait(&h, &c.watching, AGENT_WAIT_MS));
    for (int i = 0; i < 3; i++) {
        char script[64], all[256];
        snprintf(script, sizeof(script), "mkdir sub/%d; mkdir %d", i, i);
        shell(&h, &other, "user", script);
        call_done(&other);
        snprintf(all, sizeof(all), "1:sub/%d\n1:%d\n", i, i);
        for (int ms = 0; ms < AGENT_WAIT_MS && !strstr(c.events.buf, all); ms += 10)
            host_wait(&h, &never, 10);
        EXPECT_STR(c.events.buf, all);
        strbuf_reset(&c.events);
        EXPECT(move(&h, root_make("two")) == 0);
        host_wait(&h, &never, 50);
        EXPECT_STR(c.events.buf, "");
    }
    /* to other files: those that were there before are none to be told */
    EXPECT(root_send(&h, root_make("three"), LINE_ROOT_CLEAR) == 0);
    shell(&h, &other, "user", "mkdir sub/x");
    call_done(&other);
    for (int ms = 0; ms < AGENT_WAIT_MS && !strstr(c.events.buf, "x"); ms += 10)
        host_wait(&h, &never, 10);
    EXPECT_STR(c.events.buf, "1:sub/x\n");
    strbuf_reset(&c.events);
    int root = root_make("four");
    EXPECT(renameat(root, "home/user", root, "home/nobody") == 0);
    EXPECT(root_send(&h, root, LINE_ROOT_CLEAR) == 0);
    for (int ms = 0; ms < AGENT_WAIT_MS && c.events.len == 0; ms += 10)
        host_wait(&h, &never, 10);
    EXPECT_STR(c.events.buf, "3:\n");
    chan_cancel(h.chan, c.stream);
    EXPECT(host_wait(&h, &c.ended, AGENT_WAIT_MS));
    call_done(&c);
    host_stop(&h);
}

/* With CLEAR nobody stays. */
TEST(all_that_runs_ends)
{
    struct agent_host h;
    struct call c, detached, cell, next;
    struct peer p;
    unsigned n;

    host_start_rooted(&h, "one");
    shell_open(&h, &c, "root", 0, "trap '' TERM; while :; do (sleep 0.01 &) ; sleep 0.01; done");
    EXPECT(host_wait(&h, &c.started, AGENT_WAIT_MS));
    shell_open(&h, &detached, "user", PROC_DETACH, "setsid sleep 1000; true");
    EXPECT(host_wait(&h, &detached.started, AGENT_WAIT_MS));
    peer_give(&h, &p);
    EXPECT_STR(peer_hears(&h, &p), "Bpython");
    peer_say(&p, "Q", 1);
    cell_open(&h, &cell, "", "", 0, "code");
    EXPECT(host_wait(&h, &cell.executing, AGENT_WAIT_MS));
    cell_open(&h, &next, "", "", 0, "more");
    EXPECT_STR(shell_says(&h, "user", "echo -n here"), "here"); /* the agent has come so far */

    EXPECT(root_send(&h, root_make("two"), LINE_ROOT_CLEAR) == 0);
    EXPECT(host_wait(&h, &c.ended, AGENT_WAIT_MS) && call_process(&c).how == PROC_KILLED);
    EXPECT(host_wait(&h, &detached.ended, AGENT_WAIT_MS) &&
           call_process(&detached).how == PROC_KILLED);
    EXPECT(cell_wait(&h, &cell).how == KERNEL_RESTARTED);
    EXPECT(cell_wait(&h, &next).how == KERNEL_RESTARTED && !next.executing);
    EXPECT(peer_killed(&h, &p));
    expect_markers(&h, "two");
    EXPECT_STR(shell_says(&h, "user",
                          "cd /proc; for i in [0-9]*; do test $i -le 1 -o $i = $$ || cat "
                          "$i/comm; done 2>/dev/null; true"),
               "");
    call_done(&c);
    call_done(&detached);
    call_done(&cell);
    call_done(&next);
    peer_done(&p);

    /* a kernel is asked for again; the cell that was cut off was told, so the next is not */
    cell_open(&h, &cell, "", "", 0, "code");
    EXPECT(line_asks(&h, 1000) == LINE_KERNEL);
    peer_give(&h, &p);
    EXPECT_STR(peer_hears(&h, &p), "Bpython");
    EXPECT_STR(peer_passes(&h, &p, 'G', &n), "D/home/user");
    peer_say(&p, "Q", 1);
    EXPECT_STR(peer_hears(&h, &p), "X\1===code");
    peer_say(&p, "F\1\0\0\0", 5);
    EXPECT(cell_wait(&h, &cell).how == KERNEL_DONE);
    EXPECT_STR(cell.events.buf, "1:\n");
    call_done(&cell);

    /* one that was idle is missed by the next cell */
    EXPECT(root_send(&h, root_make("three"), LINE_ROOT_CLEAR) == 0);
    EXPECT(peer_killed(&h, &p));
    peer_done(&p);
    cell_open(&h, &cell, "", "", 0, "code");
    EXPECT(line_asks(&h, 1000) == LINE_KERNEL);
    peer_give(&h, &p);
    peer_say(&p, "Q", 1);
    EXPECT(host_wait(&h, &cell.executing, AGENT_WAIT_MS));
    EXPECT_STR(cell.events.buf, "1:the sandbox was rewound: the kernel's variables are gone\n");
    call_done(&cell);
    peer_done(&p);
    host_stop(&h);
}

TAP_MAIN
