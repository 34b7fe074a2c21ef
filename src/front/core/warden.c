#include "front/core/warden.h"

#include <string.h>
#include <sys/socket.h>

#include "lib/base/fd.h"
#include "lib/ipc/ipc.h"

#define TELL_FDS_MAX  2
#define ORDER_FDS_MAX 2

/* An order: it waits to be sent, then for its answer. */
struct pending {
    struct order order;
    int fds[2]; /* -1: none; there is no second without a first */
    warden_done done;
    void *arg;
    struct pending *next;
};

struct queue {
    struct pending *first, **last;
};

struct warden {
    struct front *front;
    struct warden_handlers handlers;
    uv_poll_t poll;
    int sock, events;
    uint64_t seq;
    struct queue unsent, sent;
};

static void queue_add(struct queue *q, struct pending *p)
{
    p->next = NULL;
    *q->last = p;
    q->last = &p->next;
}

static struct pending *queue_take(struct queue *q, struct pending **at)
{
    struct pending *p = *at;

    *at = p->next;
    if (q->last == &p->next)
        q->last = at;
    return p;
}

static void pending_free(struct pending *p)
{
    close_p(&p->fds[0]);
    close_p(&p->fds[1]);
    free(p);
}

static void on_ready(uv_poll_t *poll, int status, int events);

static void watch(struct warden *w)
{
    int events = UV_READABLE | (w->unsent.first ? UV_WRITABLE : 0);

    if (events != w->events && uv_poll_start(&w->poll, events, on_ready) == 0)
        w->events = events;
}

static void send_queued(struct warden *w)
{
    while (w->unsent.first) {
        struct pending *p = w->unsent.first;
        size_t n = (p->fds[0] >= 0 ? 1 : 0) + (p->fds[1] >= 0 ? 1 : 0);
        int r = ipc_send(w->sock, &p->order, sizeof p->order, p->fds, n);

        /* Any other failure means that the warden is gone; reading will notice. */
        if (r == -EAGAIN)
            break;
        close_p(&p->fds[0]);
        close_p(&p->fds[1]);
        p->fds[0] = p->fds[1] = -1;
        p = queue_take(&w->unsent, &w->unsent.first);
        if (p->order.op == ORDER_READY || p->order.op == ORDER_BEAT) /* these have no answer */
            pending_free(p);
        else
            queue_add(&w->sent, p);
    }
    watch(w);
}

void warden_order(struct front *f, struct order *o, int fd, warden_done done, void *arg)
{
    warden_order_two(f, o, fd, -1, done, arg);
}

/* There is no second descriptor without a first. */
void warden_order_two(struct front *f, struct order *o, int fd, int second, warden_done done,
                      void *arg)
{
    struct warden *w = f->warden;
    struct pending *p = xcalloc(1, sizeof *p);

    o->magic = ORDER_MAGIC;
    o->seq = ++w->seq;
    *p = (struct pending){.order = *o, .fds = {fd, second}, .done = done, .arg = arg};
    queue_add(&w->unsent, p);
    send_queued(w);
}

static void take_reply(struct warden *w, const struct order_answer *a, int *fds, size_t n_fds)
{
    for (struct pending **at = &w->sent.first; *at; at = &(*at)->next) {
        if ((*at)->order.seq != a->seq)
            continue;
        struct pending *p = queue_take(&w->sent, at);
        if (p->done)
            p->done(p->arg, a, n_fds > 0 ? steal_fd(&fds[0]) : -1);
        pending_free(p);
        return;
    }
}

/* False: nothing more to read, or the warden is gone. */
static bool take_message(struct warden *w)
{
    struct order_answer a;
    AUTO(ipc_fds_close) struct ipc_fds fds = {.max = TELL_FDS_MAX};
    ssize_t got = ipc_take(w->sock, ORDER_MAGIC, &a, sizeof a, sizeof a, &fds);

    if (got == -EAGAIN)
        return false;
    if (got < 0) {
        uv_poll_stop(&w->poll);
        w->handlers.on_gone(w->front, got == -EPROTO);
        return false;
    }
    a.message[sizeof a.message - 1] = '\0';
    a.id[ID_LEN] = a.tenant[ORDER_TENANT_LEN] = a.snapshot[ID_LEN] = '\0';
    if (a.tell == TELL_BEAT) {
        warden_order(w->front, &(struct order){.op = ORDER_BEAT}, -1, NULL, NULL);
    } else if (a.tell == TELL_REPLY) {
        take_reply(w, &a, fds.at, fds.n);
    } else {
        w->handlers.on_tell(w->front, &a, fds.at, fds.n);
        fds.n = 0;
    }
    return true;
}

static void on_ready(uv_poll_t *poll, int status, int events)
{
    struct warden *w = poll->data;

    (void)status;
    if (events & UV_WRITABLE)
        send_queued(w);
    /* Limited, so that connections get their turn as well. */
    for (int i = 0; i < 64 && take_message(w); i++)
        ;
}

int warden_open(struct front *f, int sock, const struct warden_handlers *h, struct sg_error *e)
{
    struct warden *w = xcalloc(1, sizeof *w);
    int r;

    *w = (struct warden){.front = f, .handlers = *h, .sock = sock};
    w->unsent.last = &w->unsent.first;
    w->sent.last = &w->sent.first;
    w->poll.data = w;
    fd_set_nonblock(sock, true);
    r = uv_poll_init(f->loop, &w->poll, sock);
    if (r < 0) {
        free(w);
        return err_set(e, SG_ERR_INTERNAL, r, "watch the warden's socket: %s", uv_strerror(r));
    }
    f->warden = w;
    watch(w);
    return 0;
}

int warden_error(const struct order_answer *a, struct sg_error *e)
{
    enum sg_error_kind kind = SG_ERR_INTERNAL;

    if (a->code >= 0)
        return 0;
    if (a->error_kind > SG_ERR_NONE && a->error_kind < SG_ERR_MAX_)
        kind = (enum sg_error_kind)a->error_kind;
    return err_set(e, kind, a->code, "%s", a->message);
}
