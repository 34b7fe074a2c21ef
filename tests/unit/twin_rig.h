/* A stopped process and its twin, made of plain processes: K adds one to each byte that it reads
 * from descriptor 3; H has the same memory and is stopped from its birth. */
#pragma once

#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tap.h"
#include "inside/broker/source.h"
#include "inside/broker/tracee.h"

struct twin {
    pid_t k, h;
    int sock;
    struct cpu_state state;
    uint64_t call_at;
};

static inline void block_sigchld(void)
{
    sigset_t child;

    sigemptyset(&child);
    sigaddset(&child, SIGCHLD);
    sigprocmask(SIG_BLOCK, &child, NULL);
}

static _Noreturn inline void add_ones(void)
{
    char c;

    while (syscall(SYS_read, 3, &c, 1) == 1) {
        c++;
        syscall(SYS_write, 3, &c, 1);
    }
    _exit(0);
}

/* prepare: in K, before it idles; may be NULL. */
static inline struct twin twin_start(void (*prepare)(void *arg), void *arg, struct sg_error *e)
{
    struct cpu_call twin = {.nr = SYS_clone, .args = {CLONE_VM | CLONE_PARENT | SIGCHLD}};
    struct twin t = {0};
    char c = 'r';
    int s[2];

    block_sigchld();
    EXPECT(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, s) == 0);
    t.k = fork();
    if (t.k == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        dup2(s[1], 3);
        syscall(SYS_close_range, 4, ~0U, 0);
        if (prepare)
            prepare(arg);
        syscall(SYS_write, 3, &c, 1);
        add_ones();
    }
    close(s[1]);
    t.sock = s[0];
    /* Whoever it starts before is not traced. */
    if (read(t.sock, &c, 1) != 1 || tracee_seize(t.k, e) < 0) {
        printf("# no twin can be had\n");
        exit(1);
    }
    for (int i = 0; i < 2000 && !t.call_at; i++) {
        if (tracee_stop(t.k, e) < 0 || cpu_save(t.k, &t.state) < 0)
            break;
        t.call_at = cpu_reading_from(t.k, &t.state, 3);
        if (!t.call_at) {
            tracee_continue(t.k, e);
            poll(NULL, 0, 1);
        }
    }
    EXPECT(t.call_at != 0);
    EXPECT(tracee_enter_call(t.k, &t.state, t.call_at, &twin, e) == 0);
    EXPECT(tracee_finish_fork(t.k, &t.h, e) == 0 && tracee_await_start(t.h, e) == 0);
    EXPECT(cpu_load(t.k, &t.state) == 0); /* K stays stopped */
    return t;
}

static inline void twin_go(const struct twin *t)
{
    tracee_let_go(t->k);
}

static inline bool twin_answers(const struct twin *t)
{
    struct pollfd p = {.fd = t->sock, .events = POLLIN};
    char c = 'a';

    return write(t->sock, &c, 1) == 1 && poll(&p, 1, 5000) == 1 && read(t->sock, &c, 1) == 1 &&
           c == 'b';
}

static inline void twin_end(struct twin *t)
{
    if (t->h > 0)
        tracee_kill(t->h);
    if (t->k > 0)
        tracee_kill(t->k);
    close(t->sock);
}
