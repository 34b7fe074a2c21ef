/* Kernels that come over the line, where the test is the kernel: it holds the other end of the
 * control socket and of the pipes, and says what no kernel of ours would. A process inside lends
 * its pid. */
#pragma once

#include "lib/ipc/ipc.h"
#include "agent_kernel.h"

struct peer {
    struct call body;             /* the process */
    int control, out, err, pidfd; /* our ends; the pidfd is a pipe, readable when "dead" */
};

/* Hands over a kernel whose process runs the script, asked for or not; a copy of `was`, if that is
 * not 0. */
static inline void peer_give_process(struct agent_host *h, struct peer *p, int32_t was,
                                     const char *script)
{
    int control[2], out[2], err[2], death[2];

    shell_open(h, &p->body, "user", 0, script);
    EXPECT(host_wait(h, &p->body.started, AGENT_WAIT_MS));
    EXPECT(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, control) == 0);
    EXPECT(pipe2(out, O_CLOEXEC) == 0 && pipe2(err, O_CLOEXEC) == 0 &&
           pipe2(death, O_CLOEXEC) == 0);
    struct line_message m = {.what = LINE_KERNEL, .pid = (int32_t)p->body.pid, .was = was};
    int fds[] = {control[1], out[0], err[0], death[0]};
    EXPECT(ipc_send(h->line, &m, sizeof(m), fds, ARRAY_SIZE(fds)) == 0);
    for (size_t i = 0; i < ARRAY_SIZE(fds); i++)
        close(fds[i]);
    p->control = control[0];
    p->out = out[1];
    p->err = err[1];
    p->pidfd = death[1];
}

static inline void peer_give_copy(struct agent_host *h, struct peer *p, int32_t was)
{
    peer_give_process(h, p, was, "trap 'echo interrupted' INT; while :; do sleep 0.02; done");
}

static inline void peer_give(struct agent_host *h, struct peer *p)
{
    peer_give_copy(h, p, 0);
}

static inline void peer_hang_up(struct peer *p)
{
    close(p->control);
    close(p->out);
    close(p->err);
    close(p->pidfd);
}

/* Of one whose process has ended, or before nothing but the host's end: what comes of it has no
 * place to go. */
static inline void peer_done(struct peer *p)
{
    peer_hang_up(p);
    call_done(&p->body);
}

static inline void peer_say(struct peer *p, const void *packet, size_t len)
{
    EXPECT(send(p->control, packet, len, MSG_NOSIGNAL) == (ssize_t)len);
}

/* The next packet that the agent sends; its NULs as '='. "" after a second, or at the end. */
static inline const char *peer_hears(struct agent_host *h, struct peer *p)
{
    static char text[256 * 1024];
    struct pollfd poll_fd = {.fd = p->control, .events = POLLIN};
    bool never = false;

    for (int i = 0; i < 100 && poll(&poll_fd, 1, 0) == 0; i++)
        host_wait(h, &never, 10);
    ssize_t n = recv(p->control, text, sizeof(text) - 1, MSG_DONTWAIT);
    n = n < 0 ? 0 : n;
    for (ssize_t i = 0; i < n; i++)
        if (!text[i])
            text[i] = '=';
    text[n] = '\0';
    return text;
}

/* Packets of one kind, until another comes, which is the answer. */
static inline const char *peer_passes(struct agent_host *h, struct peer *p, char kind,
                                      unsigned *ret_n)
{
    const char *text = peer_hears(h, p);

    for (*ret_n = 0; text[0] == kind; (*ret_n)++)
        text = peer_hears(h, p);
    return text;
}

/* What the agent asks for on the line: 0 if nothing in that time. */
static inline uint32_t line_asks(struct agent_host *h, int ms)
{
    struct pollfd p = {.fd = h->line, .events = POLLIN};
    struct line_message m = {0};
    bool never = false;

    for (; ms > 0 && poll(&p, 1, 0) == 0; ms -= 10)
        host_wait(h, &never, 10);
    return recv(h->line, &m, sizeof(m), MSG_DONTWAIT) == (ssize_t)sizeof(m) ? m.what : 0;
}

static inline void start_twins(struct agent_host *h)
{
    host_twins = true;
    host_start_line(h);
    host_twins = false;
}

static inline bool peer_killed(struct agent_host *h, struct peer *p)
{
    return host_wait(h, &p->body.ended, AGENT_WAIT_MS) && call_process(&p->body).how == PROC_KILLED;
}
