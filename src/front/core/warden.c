#include "front/core/warden.h"

#include "lib/uv/ipc_uv.h"

#define TELL_FDS_MAX 2

struct warden {
    struct ipc_uv ipc;
    struct front *front;
    struct warden_handlers handlers;
    struct list waiting; /* of struct waiting_order */
};

struct waiting_order {
    struct list link;
    struct order order;
    int fd, second;
    warden_done done;
    void *arg;
    uint64_t upto; /* sent when this change of the store is kept */
};

static struct warden *warden_of(struct ipc_link *l)
{
    return CONTAINER_OF(l, struct warden, ipc.link);
}

static struct order_answer *terminate_texts(struct order_answer *a)
{
    a->message[sizeof(a->message) - 1] = '\0';
    a->id[ID_LEN] = a->tenant[ORDER_TENANT_LEN] = a->snapshot[ID_LEN] = '\0';
    return a;
}

static int error_of(const struct order_answer *a, struct sg_error *e)
{
    enum sg_error_kind kind = SG_ERR_INTERNAL;

    if (a->code >= 0)
        return 0;
    if (a->error_kind > SG_ERR_NONE && a->error_kind < SG_ERR_MAX_)
        kind = (enum sg_error_kind)a->error_kind;
    return err_set(e, kind, a->code, "%s", a->message);
}

static int on_answer(const struct ipc_call *c, struct ipc_in *in)
{
    /* When the warden is gone, the front ends, and nobody needs an answer. */
    if (in->r < 0 || !c->done)
        return 0;
    struct warden_answer w = {.a = terminate_texts(in->m), .fd = &in->fds.at[0]};
    w.r = error_of(w.a, &w.e);
    ((warden_done)c->done)(c->arg, &w);
    return 0;
}

static int on_message(struct ipc_in *in)
{
    struct warden *w = warden_of(in->link);
    struct order_answer *a = terminate_texts(in->m);

    if (a->tell == TELL_BEAT) {
        warden_order(w->front, &(struct order){.op = ORDER_BEAT}, -1, NULL, NULL);
    } else if (a->tell != TELL_REPLY) {
        w->handlers.on_tell(w->front, a, in->fds.at, in->fds.n);
        in->fds.n = 0;
    }
    return 0;
}

static void on_gone(struct ipc_link *l, int r)
{
    struct warden *w = warden_of(l);

    w->handlers.on_gone(w->front, r == -EPROTO);
}

static const struct ipc_kind link_kind = {
    .magic = ORDER_MAGIC,
    .max = sizeof(struct order_answer),
    .fds_max = TELL_FDS_MAX,
    .take = on_message,
    .answer = on_answer,
    .gone = on_gone,
};

void warden_order(struct front *f, struct order *o, int fd, warden_done done, void *arg)
{
    warden_order_two(f, o, fd, -1, done, arg);
}

/* There is no second descriptor without a first. If sending fails the warden is gone; reading will
 * notice. */
static void send_order(struct front *f, struct order *o, int fd, int second, warden_done done,
                       void *arg)
{
    struct ipc_link *l = &f->warden->ipc.link;
    int fds[] = {fd, second};
    struct ipc_out out = {.head = o,
                          .len = sizeof(*o),
                          .fds = fds,
                          .n_fds = (fd >= 0 ? 1 : 0) + (second >= 0 ? 1 : 0)};

    if (o->op == ORDER_READY || o->op == ORDER_BEAT) /* these have no answer */
        ipc_link_send(l, &out);
    else
        ipc_link_call(l, &out, (void (*)(void))done, arg);
    close_p(&fd);
    close_p(&second);
}

/* Whether it makes or removes what a row of the store names. That row must be on disk first:
 * otherwise a power cut could leave files that no row knows, or a row without its files. */
static bool follows_store(const struct order *o)
{
    static const bool follow[ORDER_MAX_] = {
        [ORDER_SAVE] = true,        [ORDER_FORGET] = true,        [ORDER_SNAPSHOT] = true,
        [ORDER_VOLUME_MAKE] = true, [ORDER_VOLUME_REMOVE] = true,
    };

    return follow[o->op];
}

void warden_order_two(struct front *f, struct order *o, int fd, int second, warden_done done,
                      void *arg)
{
    uint64_t upto = follows_store(o) ? commits_awaited(&f->commits, 0) : 0;

    if (upto == 0) {
        send_order(f, o, fd, second, done, arg);
        return;
    }
    struct waiting_order *w = NEW(struct waiting_order, .order = *o, .fd = fd, .second = second,
                                  .done = done, .arg = arg, .upto = upto);
    list_append(&f->warden->waiting, &w->link);
}

void warden_kept(struct front *f)
{
    struct list *waiting = &f->warden->waiting;

    while (!list_empty(waiting)) {
        struct waiting_order *w = LIST_FIRST(struct waiting_order, waiting, link);

        if (w->upto > f->commits.kept)
            break;
        list_remove(&w->link);
        send_order(f, &w->order, w->fd, w->second, w->done, w->arg);
        free(w);
    }
}

void warden_open(struct front *f, int sock, const struct warden_handlers *h)
{
    struct warden *w = f->warden = NEW(struct warden, .front = f, .handlers = *h);

    ipc_uv_init(&w->ipc, f->loop, &link_kind);
    ipc_link_open(&w->ipc.link, sock);
}
