#include "warden/sandboxes/discard.h"

#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "lib/base/clock.h"
#include "lib/log/log.h"
#include "warden/processes/files_worker.h"
#include "warden/processes/task.h"
#include "warden/server.h"

#define DISCARDS_MAX 32 /* directories that one worker removes */
/* Files that a sandbox leaves, because it moved or ended, are removed after that work, in idle
 * time; and if there never is idle time, at DISCARD_LATE_NS all the same. */
#define DISCARD_NS      30000000ull
#define DISCARD_LATE_NS 250000000ull

struct discarded {
    struct list link;
    int mount;
    uint32_t first_id;
    char dir[FILES_NAME];
};

static void start(struct server *s);

static void on_timer(struct loop_timer *timer)
{
    struct server *s = CONTAINER_OF(timer, struct server, discard_timer);

    if (s->discards_due) {
        start(s);
        return;
    }
    s->discards_due = true;
    loop_want_idle(&s->loop);
    loop_timer_set(&s->loop, timer, clock_ns() + DISCARD_LATE_NS);
}

void discard(void *server, int mount, uint32_t first_id, const char *dir)
{
    struct server *s = server;
    struct discarded *d;

    if (s->closing) /* files in memory go anyway */
        return;
    d = xcalloc(1, sizeof(*d));
    d->first_id = first_id;
    d->mount = fcntl(mount, F_DUPFD_CLOEXEC, 0);
    snprintf(d->dir, sizeof(d->dir), "%s", dir);
    if (list_empty(&s->discards)) {
        s->discards_due = false;
        s->discard_timer.fn = on_timer;
        loop_timer_set(&s->loop, &s->discard_timer, clock_ns() + DISCARD_NS);
    }
    list_push(&s->discards, &d->link);
}

/* Runs in the child: whoever closes a mount last unmounts it. */
static int close_last(const int *fds, void *arg UNUSED)
{
    char none;

    while (read(fds[1], &none, 1) < 0 && errno == EINTR)
        ;
    close(fds[0]);
    return 0;
}

void discard_mount(void *server, int mount)
{
    struct server *s = server;
    int fds[] = {mount, -1}, ends[] = {-1, -1};

    if (!s->closing && pipe2(ends, O_CLOEXEC) == 0) {
        fds[1] = ends[0];
        task_start(s, fds, ARRAY_SIZE(fds), close_last, NULL, NULL);
    }
    close(mount);
    close_p(&ends[0]);
    close_p(&ends[1]);
}

static void forget_first(struct server *s)
{
    struct discarded *d = LIST_POP(struct discarded, &s->discards, link);

    close_p(&d->mount);
    free(d);
}

static void on_removed(void *arg UNUSED, const struct files_answer *a)
{
    if (a->code < 0)
        log_line(LEVEL_DEBUG, "files of a sandbox are left in memory: %s", a->message);
}

/* Starts a worker for as many directories as one worker removes. */
static void start(struct server *s)
{
    AUTO(free_p) struct files_order *o = xcalloc(1, sizeof(*o));
    struct sg_error e = {0};
    size_t n = 0;

    files_order_init(o, FILES_REMOVE);
    LIST_EACH(struct discarded, d, &s->discards, link) {
        if (n == DISCARDS_MAX)
            break;
        n++;
        if (d->mount >= 0)
            files_order_add(o, d->mount, d->first_id, d->dir, false);
    }
    if (o->request.n_layers > 0 && !files_worker_start(s, o, on_removed, NULL, &e))
        log_line(LEVEL_WARN, "%s", e.message);
    while (n-- > 0)
        forget_first(s);
    loop_timer_cancel(&s->loop, &s->discard_timer);
    if (!list_empty(&s->discards))
        loop_timer_set(&s->loop, &s->discard_timer, clock_ns() + DISCARD_LATE_NS);
}

bool discards_idle(struct server *s)
{
    if (list_empty(&s->discards) || !s->discards_due)
        return false;
    start(s);
    return true;
}

void discards_close(struct server *s)
{
    loop_timer_cancel(&s->loop, &s->discard_timer);
    while (!list_empty(&s->discards))
        forget_first(s);
}
