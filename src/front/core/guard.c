#include "front/core/guard.h"

#include <stdio.h>

#include "front/core/news.h"
#include "lib/uv/ipc_uv.h"

_Static_assert(sizeof(struct ask) % _Alignof(struct egress_news) == 0, "news follow it");

struct guard_link {
    struct ipc_uv ipc;
    struct front *front;
};

static bool is_whole(const struct ask *a, size_t len)
{
    return a->len == len - sizeof(*a);
}

static int on_answer(const struct ipc_call *c, struct ipc_in *in)
{
    const struct ask *a = in->m;
    guard_done done = (guard_done)c->done;

    if (in->r == 0 && is_whole(a, in->len)) {
        done(c->arg, a->code > 0 ? -EPROTO : a->code, a + 1, a->len, steal_fd(&in->fds.at[0]));
        return 0;
    }
    done(c->arg, in->r == -ETIMEDOUT ? in->r : -EAGAIN, "", 0, -1);
    return -EPROTO;
}

/* Takes messages that were not asked for. A guard that was taken over can tell lies here, and do
 * nothing else. */
static void take_news(struct front *f, struct ask *a)
{
    struct egress_news *news = (struct egress_news *)(a + 1);
    size_t n = a->len / sizeof(*news), kept = 0;

    if (a->what != ASK_NEWS || a->len % sizeof(*news) != 0)
        return;
    for (size_t i = 0; i < n; i++) {
        struct egress_news *one = &news[i];

        one->id[ID_LEN] = one->tenant[ID_LEN] = '\0';
        one->protocol[sizeof(one->protocol) - 1] = '\0';
        one->target[sizeof(one->target) - 1] = one->why[sizeof(one->why) - 1] = '\0';
        if (id_valid(one->id) && id_valid(one->tenant) && one->verdict > 0 &&
            one->verdict < VERDICT_MAX_)
            news[kept++] = *one;
    }
    egress_news_take(f, news, kept);
}

/* An answer to no known question came too late. */
static int on_message(struct ipc_in *in)
{
    struct ask *a = in->m;

    if (!is_whole(a, in->len))
        return -EPROTO;
    if (a->seq == 0)
        take_news(CONTAINER_OF(in->link, struct guard_link, ipc.link)->front, a);
    return 0;
}

static const struct ipc_kind link_kind = {
    .magic = GUARD_MAGIC,
    .min = sizeof(struct ask),
    .max = sizeof(struct ask) + GUARD_PAYLOAD_MAX,
    .fds_max = 1,
    .unsent_max = GUARD_WAITING_MAX,
    .calls_max = GUARD_WAITING_MAX,
    .wait_ns = GUARD_WAIT_MS * 1000000ull,
    .take = on_message,
    .answer = on_answer,
};

static void copy_id(char ret[ID_LEN + 1], const char *id)
{
    if (id)
        snprintf(ret, ID_LEN + 1, "%s", id);
}

void guard_ask(struct front *f, enum ask_what what, const char *tenant, const char *id,
               const void *payload, size_t len, guard_done done, void *arg)
{
    struct ask ask = {.what = what, .len = (uint32_t)len};
    struct ipc_out out = {.head = &ask, .len = sizeof(ask), .more = payload, .more_len = len};
    int r = -EAGAIN;

    copy_id(ask.tenant, tenant);
    copy_id(ask.id, id);
    if (len > GUARD_PAYLOAD_MAX)
        r = -E2BIG;
    else if (f->guard && done)
        r = ipc_link_call(&f->guard->ipc.link, &out, (void (*)(void))done, arg);
    else if (f->guard)
        ipc_link_send(&f->guard->ipc.link, &out);
    if (r < 0 && done)
        done(arg, r == -E2BIG ? r : -EAGAIN, "", 0, -1);
}

void guard_set_socket(struct front *f, int fd)
{
    if (!f->guard) {
        f->guard = NEW(struct guard_link, .front = f);
        ipc_uv_init(&f->guard->ipc, f->loop, &link_kind);
    }
    if (fd >= 0)
        ipc_link_open(&f->guard->ipc.link, fd);
    else
        ipc_link_close(&f->guard->ipc.link);
}
