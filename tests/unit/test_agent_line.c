/* Channels that come and go over a line, as when the host's front is started anew. */
#include "lib/ipc/ipc.h"
#include "agent_host.h"

static void start_server(struct agent_host *h, struct call *c)
{
    call_open(h, c, OP_PROCESS_START, "ssuuuUssusssu", "user", "", PROC_DETACH | PROC_STDIN, 0u, 0u,
              (uint64_t)0, "server", "a note", 3u, "/bin/bash", "-c",
              "while read l; do echo got $l; done; exit 3", 0u);
    EXPECT(host_wait(h, &c->started, AGENT_WAIT_MS));
}

TEST(detached_processes_survive_their_channel)
{
    struct agent_host h;
    struct call c, own, other, put;

    host_start_line(&h);
    start_server(&h, &c);
    uint32_t pid = c.pid;
    shell_open(&h, &own, "user", 0, "sleep 1000 & echo ready; wait");
    EXPECT(host_wait_output(&h, &own, "ready\n"));
    call_open(&h, &put, OP_FILE_WRITE, "ssuuu", "user", "half", 0644u, 0u, 0u);
    chan_send(h.chan, put.stream, 0, "half", 4);
    CALL(&h, &other, OP_PING, "");
    call_done(&other);

    host_connect(&h);
    call_done(&c);
    call_done(&own);
    call_done(&put);
    call_open(&h, &other, OP_PROCESS_ATTACH, "us", 0u, "server");
    EXPECT(host_wait(&h, &other.started, AGENT_WAIT_MS) && other.pid == pid);
    call_open(&h, &c, OP_PROCESS_INPUT, "usu", pid, "", (uint32_t)INPUT_CLOSE);
    chan_send(h.chan, c.stream, CHAN_STDIN, "again\n", 6);
    chan_eof(h.chan, c.stream);
    EXPECT(host_wait(&h, &other.ended, AGENT_WAIT_MS));
    EXPECT_STR(other.out.buf, "got again\n");
    EXPECT(call_process(&other).code == 3);
    call_done(&other);
    call_done(&c);
    /* what belonged to a stream went with it */
    EXPECT(host_runs_none(&h, "sleep"));
    EXPECT_STR(shell_says(&h, "user", "ls -A"), "");
    host_stop(&h);
}

/* Nobody is connected, and a process writes, exits, and is found by the next. */
TEST(between_channels)
{
    struct agent_host h;
    struct call c;

    host_start_line(&h);
    call_open(&h, &c, OP_PROCESS_START, "ssuuuUssusssu", "user", "", PROC_DETACH, 0u, 0u,
              (uint64_t)0, "worker", "", 3u, "/bin/bash", "-c",
              "until [ -e /tmp/gone ]; do sleep 0.01; done; head -c 5000000 /dev/zero; exit 6", 0u);
    EXPECT(host_wait(&h, &c.started, AGENT_WAIT_MS));
    call_done(&c);
    call_open(&h, &c, OP_PROCESS_START, "ssuuuUssusssu", "user", "", PROC_DETACH, 0u, 0u,
              (uint64_t)300, "limited", "", 3u, "/bin/bash", "-c",
              "sleep 0.1; touch /tmp/gone; sleep 100", 0u);
    EXPECT(host_wait(&h, &c.started, AGENT_WAIT_MS));
    chan_free(h.chan);
    h.chan = NULL;
    call_done(&c);

    usleep(600 * 1000); /* the time in which nobody is there is what is tested */
    host_connect(&h);
    CALL(&h, &c, OP_PROCESS_ATTACH, "us", 0u, "worker");
    EXPECT(call_process(&c).code == 6);
    call_done(&c);
    CALL(&h, &c, OP_PROCESS_ATTACH, "us", 0u, "limited");
    EXPECT(call_process(&c).timed_out == 1);
    call_done(&c);
    host_stop(&h);
}

TEST(a_broken_channel_is_only_that)
{
    struct agent_host h;
    struct call c;
    struct line_message channel = {.what = LINE_CHANNEL};
    int fds[2];

    host_start_line(&h);
    start_server(&h, &c);
    call_done(&c);
    for (int i = 0; i < 20; i++) {
        EXPECT(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) == 0);
        EXPECT(ipc_send(h.line, &channel, sizeof(channel), &fds[1], 1) == 0);
        close(fds[1]);
        EXPECT(write(fds[0], "this is no frame, nor will it be", 32) == 32);
        if (i % 2)
            EXPECT(read(fds[0], fds, 1) == 0); /* hung up on */
        close(fds[0]);
    }
    host_connect(&h);
    CALL(&h, &c, OP_PROCESS_LIST, "");
    EXPECT(c.status == 0 && c.out.len > 0);
    call_done(&c);
    host_stop(&h);
}

TEST(anything_else_on_the_line_ends_the_agent)
{
    static const struct {
        struct line_message m;
        size_t len;
        size_t n_fds;
        bool twins;
    } bad[] = {
        {{.what = 'x'}, sizeof(struct line_message), 0, false},
        {{.what = LINE_CHANNEL}, 1, 1, false}, /* half of one */
        {{.what = LINE_CHANNEL}, sizeof(struct line_message), 0, false},
        {{.what = LINE_CHANNEL}, sizeof(struct line_message), 2, false},
        {{.what = LINE_KERNEL, .pid = 77},
         sizeof(struct line_message),
         4,
         false}, /* was never offered */
        {{.what = LINE_NO_KERNEL}, sizeof(struct line_message), 0, false},
        {{.what = LINE_KERNEL, .pid = 77}, sizeof(struct line_message), 3, true},
        {{.what = LINE_KERNEL, .pid = 77}, sizeof(struct line_message), 5, true},
        {{.what = LINE_KERNEL, .pid = 1},
         sizeof(struct line_message),
         4,
         true}, /* the agent itself */
        {{.what = LINE_KERNEL, .pid = -1}, sizeof(struct line_message), 4, true},
        {{.what = LINE_NO_KERNEL}, sizeof(struct line_message), 1, true},
        {{.what = LINE_KERNEL, .pid = 77, .was = -1}, sizeof(struct line_message), 4, true},
        {{.what = LINE_ROOT}, sizeof(struct line_message), 0, true},
        {{.what = LINE_ROOT}, sizeof(struct line_message), 2, false},
        {{.what = LINE_ROOT, .code = 4}, sizeof(struct line_message), 1, false},
        {{.what = LINE_MOUNT, .target = "/mnt"}, sizeof(struct line_message), 0, false},
        {{.what = LINE_MOUNT, .target = "/mnt"}, sizeof(struct line_message), 2, false},
    };
    struct agent_host h;
    struct call c;
    int fds[2];

    EXPECT(pipe2(fds, O_CLOEXEC) == 0);
    int many[] = {fds[0], fds[0], fds[0], fds[0], fds[0]};
    for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
        host_twins = bad[i].twins;
        host_start_line(&h);
        start_server(&h, &c);
        call_done(&c);
        EXPECT(ipc_send(h.line, &bad[i].m, bad[i].len, many, bad[i].n_fds) == 0);
        EXPECT(host_ended(&h));
        chan_free(h.chan);
        close(h.line);
    }
    host_twins = false;
    close(fds[0]);
    close(fds[1]);

    /* and so does its end, whether there is a channel or not */
    for (int with = 0; with < 2; with++) {
        h.chan = NULL;
        h.line = host_fork(&h, true);
        if (with)
            host_connect(&h);
        close(h.line);
        EXPECT(host_ended(&h));
        chan_free(h.chan);
    }
}

TAP_MAIN
