/* The server's event loop. */
#include "tap.h"

#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "lib/base/clock.h"
#include "warden/reactor.h"

TAP_MAIN

#define MS 1000000ull

struct probe {
    struct event_source source;
    struct timer timer;
    struct reactor *re;
    struct probe *victim; /* freed by this one's callback */
    int fired;
};

static int order[512], n_order;

static void on_event(struct event_source *src, uint32_t events)
{
    struct probe *p = CONTAINER_OF(src, struct probe, source);
    char c;

    EXPECT(events & EPOLLIN);
    EXPECT(read(src->fd, &c, 1) == 1);
    p->fired++;
    if (p->victim) {
        reactor_unwatch(p->re, &p->victim->source);
        free(p->victim);
        p->victim = NULL;
    }
}

static void on_timer(struct timer *t)
{
    struct probe *p = CONTAINER_OF(t, struct probe, timer);

    EXPECT(clock_ns() >= t->at_ns);
    order[n_order++] = p->fired;
}

TEST(timers_fire_in_the_order_of_their_times)
{
    static struct probe probes[300];
    struct reactor re;
    struct sg_error e;
    uint64_t now = clock_ns();
    unsigned seed = 1;

    EXPECT(reactor_init(&re, &e) == 0);
    for (int i = 0; i < 300; i++) {
        probes[i].timer.fn = on_timer;
        timer_set(&re, &probes[i].timer, now + 1 + (seed = seed * 1103515245 + 12345) % (20 * MS));
    }
    /* Some are moved, some taken out. */
    for (int i = 0; i < 300; i += 3)
        timer_set(&re, &probes[i].timer, now + 1 + (seed = seed * 1103515245 + 12345) % (20 * MS));
    for (int i = 0; i < 300; i += 10)
        timer_cancel(&re, &probes[i].timer);
    for (int i = 0; i < 300; i++) {
        int rank = 0;
        for (int k = 0; k < 300; k++)
            rank += probes[k].timer.place && probes[k].timer.at_ns < probes[i].timer.at_ns;
        probes[i].fired = rank;
    }
    n_order = 0;
    while (re.n_timers > 0)
        EXPECT(reactor_turn(&re) == 0);
    EXPECT(n_order == 270);
    for (int i = 1; i < n_order; i++)
        EXPECT(order[i - 1] <= order[i]);
    EXPECT(clock_ns() - now < 5000 * MS);
    timer_cancel(&re, &probes[0].timer); /* not armed: nothing happens */
    reactor_done(&re);
}

TEST(a_callback_may_free_another_object_whose_event_is_pending)
{
    struct probe *a = xcalloc(1, sizeof(*a)), *b = xcalloc(1, sizeof(*b)), *left;
    struct reactor re;
    struct sg_error e;
    int p[2], q[2];

    EXPECT(pipe2(p, O_CLOEXEC) == 0 && pipe2(q, O_CLOEXEC) == 0);
    EXPECT(reactor_init(&re, &e) == 0);
    *a = (struct probe){.source = {.fd = -1, .fn = on_event}, .re = &re, .victim = b};
    *b = (struct probe){.source = {.fd = -1, .fn = on_event}, .re = &re, .victim = a};
    reactor_watch(&re, &a->source, p[0], EPOLLIN);
    reactor_watch(&re, &b->source, q[0], EPOLLIN);
    EXPECT(write(p[1], "x", 1) == 1 && write(q[1], "x", 1) == 1);
    EXPECT(reactor_turn(&re) == 0);
    reactor_want_idle(&re);
    re.want_idle = false;
    /* One of the two is gone; the other has seen its event. */
    char c;
    bool a_left = fcntl(p[0], F_SETFL, O_NONBLOCK) == 0 && read(p[0], &c, 1) < 0;
    left = a_left ? a : b;
    EXPECT(left->fired == 1);
    reactor_unwatch(&re, &left->source);
    free(left);
    reactor_done(&re);
    for (int i = 0; i < 2; i++) {
        close(p[i]);
        close(q[i]);
    }
}

static int idles;

static void on_idle(struct reactor *re)
{
    if (++idles < 3)
        reactor_want_idle(re);
}

TEST(idle_work_waits_until_nothing_else_is_there)
{
    struct probe a = {.source = {.fd = -1, .fn = on_event}};
    struct reactor re;
    struct sg_error e;
    int p[2];

    EXPECT(pipe2(p, O_CLOEXEC) == 0 && reactor_init(&re, &e) == 0);
    re.idle = on_idle;
    reactor_watch(&re, &a.source, p[0], EPOLLIN);
    EXPECT(write(p[1], "xx", 2) == 2);
    reactor_want_idle(&re);
    EXPECT(reactor_turn(&re) == 0 && a.fired == 1 && idles == 0);
    EXPECT(reactor_turn(&re) == 0 && a.fired == 2 && idles == 0);
    for (int i = 1; i <= 3; i++)
        EXPECT(reactor_turn(&re) == 0 && idles == i);
    EXPECT(!re.want_idle);
    reactor_unwatch(&re, &a.source);
    reactor_done(&re);
    close(p[0]);
    close(p[1]);
}

/* ---- epoll has no room ----------------------------------------------------------------------- */

/* Makes epoll_ctl fail with ENOSPC from here on. */
static void refuse_watches(void)
{
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_epoll_ctl, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSPC),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog prog = {.len = ARRAY_SIZE(code), .filter = code};

    EXPECT(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
    EXPECT(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &prog) == 0);
}

static void watch_without_room(void)
{
    struct probe watched = {.source = {.fd = -1, .fn = on_event}}, polled[3];
    struct reactor re;
    struct sg_error e;
    int pipes[4][2];

    for (int i = 0; i < 4; i++)
        EXPECT(pipe2(pipes[i], O_CLOEXEC) == 0);
    EXPECT(reactor_init(&re, &e) == 0);
    reactor_watch(&re, &watched.source, pipes[3][0], EPOLLIN);
    refuse_watches();
    for (int i = 0; i < 3; i++) {
        polled[i] = (struct probe){.source = {.fd = -1, .fn = on_event}};
        reactor_watch(&re, &polled[i].source, pipes[i][0], EPOLLIN);
    }
    EXPECT(re.n_polled == 3);
    for (int i = 0; i < 4; i++)
        EXPECT(write(pipes[i][1], "xx", 2) == 2);
    for (int i = 0; i < 8; i++)
        EXPECT(reactor_turn(&re) == 0);
    EXPECT(watched.fired == 2 && polled[0].fired == 2 && polled[1].fired == 2 &&
           polled[2].fired == 2);
    reactor_unwatch(&re, &polled[0].source);
    EXPECT(re.n_polled == 2);
    EXPECT(write(pipes[0][1], "x", 1) == 1 && write(pipes[2][1], "x", 1) == 1);
    EXPECT(reactor_turn(&re) == 0);
    EXPECT(polled[0].fired == 2 && polled[2].fired == 3);
    reactor_unwatch(&re, &polled[1].source);
    reactor_unwatch(&re, &polled[2].source);
    EXPECT(re.n_polled == 0);
    reactor_done(&re);
}

TEST(sources_that_epoll_has_no_room_for_are_polled)
{
    int status = -1;
    pid_t pid;

    fflush(stdout);
    pid = fork();
    if (pid == 0) {
        watch_without_room();
        fflush(stdout);
        _exit(tap_failures != 0);
    }
    waitpid(pid, &status, 0);
    EXPECT(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}
