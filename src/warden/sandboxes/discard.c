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
/* Files on disk that could not be removed take up room for as long as the server runs. So they are
 * tried again, after so long, and as often. */
#define DISCARD_AGAIN_NS 10000000000ull
#define DISCARD_TRIES    10

struct discarded {
    struct list link;
    int mount;
    uint32_t first_id;
    unsigned tries;
    char dir[FILES_NAME];
};

/* The work of one worker. */
struct batch {
    struct server *server;
    struct list discards; /* empty if they are in memory: a file system goes with its last user */
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

static void await(struct server *s)
{
    if (!list_empty(&s->discards))
        return;
    s->discards_due = false;
    s->discard_timer.fn = on_timer;
    loop_timer_set(&s->loop, &s->discard_timer, clock_ns() + DISCARD_NS);
}

static void on_again(struct loop_timer *timer)
{
    struct server *s = CONTAINER_OF(timer, struct server, discard_again);
    struct discarded *d;

    await(s);
    while ((d = LIST_POP(struct discarded, &s->discards_left, link)))
        list_append(&s->discards, &d->link);
}

void discard(void *server, int mount, uint32_t first_id, const char *dir)
{
    struct server *s = server;
    struct discarded *d;

    if (s->closing) /* files in memory go anyway */
        return;
    if (!dir) {
        discard_mount(s, fcntl(mount, F_DUPFD_CLOEXEC, 0));
        return;
    }
    d = xcalloc(1, sizeof(*d));
    d->first_id = first_id;
    d->mount = fcntl(mount, F_DUPFD_CLOEXEC, 0);
    snprintf(d->dir, sizeof(d->dir), "%s", dir);
    await(s);
    list_append(&s->discards, &d->link);
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

static void forget(struct discarded *d)
{
    close_p(&d->mount);
    free(d);
}

/* Some of a batch may have been removed: that is no error when it is tried again. */
static void end_batch(struct batch *b, const char *trouble)
{
    struct server *s = b->server;
    struct discarded *d;

    if (trouble)
        log_line(LEVEL_DEBUG, "files of a sandbox are left: %s", trouble);
    while ((d = LIST_POP(struct discarded, &b->discards, link))) {
        if (trouble && ++d->tries < DISCARD_TRIES && !s->closing) {
            list_append(&s->discards_left, &d->link);
            s->discard_again.fn = on_again;
            loop_timer_set(&s->loop, &s->discard_again, clock_ns() + DISCARD_AGAIN_NS);
        } else {
            forget(d);
        }
    }
    free(b);
}

static void on_removed(void *arg, const struct files_answer *a)
{
    end_batch(arg, a->code < 0 ? a->message : NULL);
}

/* Starts a worker for as many directories as one worker removes. */
static void start(struct server *s)
{
    AUTO(free_p) struct files_order *o = xcalloc(1, sizeof(*o));
    struct batch *b = NEW(struct batch, .server = s);
    struct sg_error e = {0};
    struct discarded *d;
    struct list memory = {0};

    files_order_init(o, FILES_REMOVE);
    for (size_t n = 0; n < DISCARDS_MAX && (d = LIST_POP(struct discarded, &s->discards, link));
         n++) {
        if (d->mount >= 0)
            files_order_add(o, d->mount, d->first_id, d->dir, false);
        list_append(s->scratch_store ? &b->discards : &memory, &d->link);
    }
    if (o->request.n_layers == 0)
        end_batch(b, NULL);
    else if (!files_worker_start(s, o, on_removed, b, &e))
        end_batch(b, e.message);
    while ((d = LIST_POP(struct discarded, &memory, link)))
        forget(d);
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
    struct discarded *d;

    loop_timer_cancel(&s->loop, &s->discard_timer);
    loop_timer_cancel(&s->loop, &s->discard_again);
    while ((d = LIST_POP(struct discarded, &s->discards, link)) ||
           (d = LIST_POP(struct discarded, &s->discards_left, link)))
        forget(d);
}
