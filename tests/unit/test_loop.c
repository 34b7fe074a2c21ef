/* The event loop of warden and agent. */
#include "tap.h"

#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "lib/base/clock.h"
#include "lib/loop/tasks.h"

TAP_MAIN

#define MS 1000000ull

struct probe {
    struct loop_source source;
    struct loop_timer timer;
    struct loop *l;
    struct probe *victim; /* freed by this one's callback */
    int fired;
};

static int order[512], n_order;

static void on_event(struct loop_source *src, uint32_t events)
{
    struct probe *p = CONTAINER_OF(src, struct probe, source);
    char c;

    EXPECT(events & EPOLLIN);
    EXPECT(read(src->fd, &c, 1) == 1);
    p->fired++;
    if (p->victim) {
        loop_unwatch(p->l, &p->victim->source);
        free(p->victim);
        p->victim = NULL;
    }
}

static void on_timer(struct loop_timer *t)
{
    struct probe *p = CONTAINER_OF(t, struct probe, timer);

    EXPECT(clock_ns() >= t->at_ns);
    order[n_order++] = p->fired;
}

TEST(timers_fire_in_the_order_of_their_times)
{
    static struct probe probes[300];
    struct loop l;
    uint64_t now = clock_ns();
    unsigned seed = 1;

    EXPECT(loop_init(&l, 1) == 0);
    for (int i = 0; i < 300; i++) {
        probes[i].timer.fn = on_timer;
        loop_timer_set(&l, &probes[i].timer,
                       now + 1 + (seed = seed * 1103515245 + 12345) % (20 * MS));
    }
    /* Some are moved, some taken out. */
    for (int i = 0; i < 300; i += 3)
        loop_timer_set(&l, &probes[i].timer,
                       now + 1 + (seed = seed * 1103515245 + 12345) % (20 * MS));
    for (int i = 0; i < 300; i += 10)
        loop_timer_cancel(&l, &probes[i].timer);
    for (int i = 0; i < 300; i++) {
        int rank = 0;
        for (int k = 0; k < 300; k++)
            rank += probes[k].timer.place && probes[k].timer.at_ns < probes[i].timer.at_ns;
        probes[i].fired = rank;
    }
    n_order = 0;
    while (l.n_timers > 0)
        EXPECT(loop_turn(&l) == 0);
    EXPECT(n_order == 270);
    for (int i = 1; i < n_order; i++)
        EXPECT(order[i - 1] <= order[i]);
    EXPECT(clock_ns() - now < 5000 * MS);
    loop_timer_cancel(&l, &probes[0].timer); /* not armed: nothing happens */
    loop_done(&l);
}

TEST(a_callback_may_free_another_object_whose_event_is_pending)
{
    struct probe *a = xcalloc(1, sizeof(*a)), *b = xcalloc(1, sizeof(*b)), *left;
    struct loop l;
    int p[2], q[2];

    EXPECT(pipe2(p, O_CLOEXEC) == 0 && pipe2(q, O_CLOEXEC) == 0);
    EXPECT(loop_init(&l, 1) == 0);
    *a = (struct probe){.source = {.fd = -1, .fn = on_event}, .l = &l, .victim = b};
    *b = (struct probe){.source = {.fd = -1, .fn = on_event}, .l = &l, .victim = a};
    loop_watch(&l, &a->source, p[0], EPOLLIN);
    loop_watch(&l, &b->source, q[0], EPOLLIN);
    EXPECT(write(p[1], "x", 1) == 1 && write(q[1], "x", 1) == 1);
    EXPECT(loop_turn(&l) == 0);
    loop_want_idle(&l);
    l.want_idle = false;
    /* One of the two is gone; the other has seen its event. */
    char c;
    bool a_left = fcntl(p[0], F_SETFL, O_NONBLOCK) == 0 && read(p[0], &c, 1) < 0;
    left = a_left ? a : b;
    EXPECT(left->fired == 1);
    loop_unwatch(&l, &left->source);
    free(left);
    loop_done(&l);
    for (int i = 0; i < 2; i++) {
        close(p[i]);
        close(q[i]);
    }
}

static int idles;

static void on_idle(struct loop *l)
{
    if (++idles < 3)
        loop_want_idle(l);
}

TEST(idle_work_waits_until_nothing_else_is_there)
{
    struct probe a = {.source = {.fd = -1, .fn = on_event}};
    struct loop l;
    int p[2];

    EXPECT(pipe2(p, O_CLOEXEC) == 0 && loop_init(&l, 1) == 0);
    l.idle = on_idle;
    loop_watch(&l, &a.source, p[0], EPOLLIN);
    EXPECT(write(p[1], "xx", 2) == 2);
    loop_want_idle(&l);
    EXPECT(loop_turn(&l) == 0 && a.fired == 1 && idles == 0);
    EXPECT(loop_turn(&l) == 0 && a.fired == 2 && idles == 0);
    for (int i = 1; i <= 3; i++)
        EXPECT(loop_turn(&l) == 0 && idles == i);
    EXPECT(!l.want_idle);
    loop_unwatch(&l, &a.source);
    loop_done(&l);
    close(p[0]);
    close(p[1]);
}

/* ---- several events in a turn ---------------------------------------------------------------- */

struct thing {
    struct loop_source source;
    struct loop_task task;
    struct loop_trash trash;
    struct loop *l;
    struct thing *other;
    int tasks;
};

static int freed, ended;

static void free_thing(struct loop_trash *trash)
{
    free(CONTAINER_OF(trash, struct thing, trash));
    freed++;
}

static void thing_end(struct thing *t)
{
    loop_unwatch(t->l, &t->source);
    loop_throw_away(t->l, &t->trash);
    ended++;
}

/* Ends both: the other's event is due in the same turn. */
static void on_thing(struct loop_source *src, uint32_t events)
{
    struct thing *t = CONTAINER_OF(src, struct thing, source);

    (void)events;
    thing_end(t->other);
    thing_end(t);
    EXPECT(freed == 0 && t->other->source.fd < 0);
}

static void on_task(struct loop_task *task)
{
    struct thing *t = CONTAINER_OF(task, struct thing, task);

    if (++t->tasks < 3)
        loop_task_queue(t->l, task);
}

TEST(the_bin_is_emptied_between_turns)
{
    struct thing *things[2];
    struct loop l;
    int pipes[2][2];

    EXPECT(loop_init(&l, LOOP_BATCH_MAX) == 0);
    for (int i = 0; i < 2; i++) {
        EXPECT(pipe2(pipes[i], O_CLOEXEC) == 0 && write(pipes[i][1], "x", 1) == 1);
        things[i] = xcalloc(1, sizeof(*things[i]));
        *things[i] =
            (struct thing){.source = {.fd = -1, .fn = on_thing}, .trash.fn = free_thing, .l = &l};
        loop_watch(&l, &things[i]->source, pipes[i][0], EPOLLIN);
    }
    things[0]->other = things[1];
    things[1]->other = things[0];
    EXPECT(loop_turn(&l) == 0 && ended == 2 && freed == 2);
    loop_done(&l);
    for (int i = 0; i < 2; i++) {
        close(pipes[i][0]);
        close(pipes[i][1]);
    }
}

TEST(a_task_runs_once_in_each_turn)
{
    struct thing t = {.task.fn = on_task};
    struct loop l;

    EXPECT(loop_init(&l, LOOP_BATCH_MAX) == 0);
    t.l = &l;
    loop_task_queue(&l, &t.task);
    loop_task_queue(&l, &t.task); /* queued already */
    for (int i = 1; i <= 3; i++)
        EXPECT(loop_turn(&l) == 0 && t.tasks == i);
    loop_task_queue(&l, &t.task);
    loop_task_cancel(&t.task);
    EXPECT(list_empty(&l.tasks));
    loop_done(&l);
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

static int told;

static void on_no_room(void)
{
    told++;
}

static void watch_without_room(void)
{
    struct probe watched = {.source = {.fd = -1, .fn = on_event}}, polled[3];
    struct loop l;
    int pipes[4][2];

    for (int i = 0; i < 4; i++)
        EXPECT(pipe2(pipes[i], O_CLOEXEC) == 0);
    EXPECT(loop_init(&l, 1) == 0);
    loop_watch(&l, &watched.source, pipes[3][0], EPOLLIN);
    refuse_watches();
    l.no_room = on_no_room;
    for (int i = 0; i < 3; i++) {
        polled[i] = (struct probe){.source = {.fd = -1, .fn = on_event}};
        loop_watch(&l, &polled[i].source, pipes[i][0], EPOLLIN);
    }
    EXPECT(told == 1);
    for (int i = 0; i < 4; i++)
        EXPECT(write(pipes[i][1], "xx", 2) == 2);
    for (int i = 0; i < 8; i++)
        EXPECT(loop_turn(&l) == 0);
    EXPECT(watched.fired == 2 && polled[0].fired == 2 && polled[1].fired == 2 &&
           polled[2].fired == 2);
    loop_unwatch(&l, &polled[0].source);
    EXPECT(write(pipes[0][1], "x", 1) == 1 && write(pipes[2][1], "x", 1) == 1);
    EXPECT(loop_turn(&l) == 0);
    EXPECT(polled[0].fired == 2 && polled[2].fired == 3);
    loop_unwatch(&l, &polled[1].source);
    loop_unwatch(&l, &polled[2].source);
    EXPECT(list_empty(&l.polled));
    loop_done(&l);
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
