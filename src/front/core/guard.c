#include "front/core/guard.h"

#include <stdio.h>
#include <string.h>

#include "lib/base/fd.h"
#include "lib/ipc/ipc.h"
#include "front/core/news.h"
#include "lib/log/log.h"

#define MESSAGE_MAX (sizeof(struct ask) + GUARD_PAYLOAD_MAX)

_Static_assert(sizeof(struct ask) % _Alignof(struct egress_news) == 0, "news follow it");

/* A question: it waits to be sent, then for its answer. */
struct question {
    struct question *next;
    guard_done done; /* NULL: nobody waits */
    void *arg;
    uint64_t deadline_ms; /* uv_now() */
    size_t len;
    struct ask ask; /* the payload follows */
};

/* A list in order of deadlines: all questions wait equally long, so new ones go to the end. */
struct questions {
    struct question *first, **last;
};

struct guard_link {
    struct front *front;
    uv_timer_t timer;
    uv_poll_t *poll; /* NULL: no guard. Allocated: it outlives its socket a little */
    int sock, events;
    uint64_t seq;
    unsigned n;
    struct questions unsent, sent;
    uint64_t buf[MESSAGE_MAX / sizeof(uint64_t) + 1]; /* one message, with room for a NUL */
};

static void questions_add(struct questions *qs, struct question *q)
{
    q->next = NULL;
    *qs->last = q;
    qs->last = &q->next;
}

static struct question *questions_take(struct questions *qs, struct question **at)
{
    struct question *q = *at;

    *at = q->next;
    if (qs->last == &q->next)
        qs->last = at;
    return q;
}

/* Answers a question and frees it. It is in no list any more. */
static void answer(struct guard_link *l, struct question *q, int r, const void *payload, size_t len,
                   int fd)
{
    l->n--;
    if (q->done)
        q->done(q->arg, r, payload, len, fd);
    else
        close_p(&fd);
    free(q);
}

static void on_ready(uv_poll_t *poll, int status, int events);

static void watch(struct guard_link *l)
{
    int events = UV_READABLE | (l->unsent.first ? UV_WRITABLE : 0);

    if (l->poll && events != l->events && uv_poll_start(l->poll, events, on_ready) == 0)
        l->events = events;
}

static void on_poll_closed(uv_handle_t *h)
{
    free(h);
}

/* Closes the socket and ends all questions. The lists are emptied first: a callback may ask again,
 * and finds no guard or the next one. */
static void drop_socket(struct guard_link *l)
{
    struct questions *both[] = {&l->sent, &l->unsent};
    struct question *gone = NULL, **last = &gone;

    if (l->poll) {
        uv_close((uv_handle_t *)steal_ptr(&l->poll), on_poll_closed);
        close(l->sock);
    }
    for (size_t i = 0; i < ARRAY_SIZE(both); i++)
        while (both[i]->first) {
            *last = questions_take(both[i], &both[i]->first);
            last = &(*last)->next;
        }
    *last = NULL;
    while (gone) {
        struct question *q = gone;

        gone = q->next;
        answer(l, q, -EAGAIN, "", 0, -1);
    }
}

static void send_waiting(struct guard_link *l)
{
    while (l->poll && l->unsent.first) {
        struct question *q = l->unsent.first;
        int r = ipc_send(l->sock, &q->ask, q->len, NULL, 0);

        if (r == -EAGAIN)
            break;
        questions_take(&l->unsent, &l->unsent.first);
        /* If sending fails because the guard is gone, reading will notice. */
        if (r < 0 || !q->done)
            answer(l, q, r < 0 ? -EAGAIN : 0, "", 0, -1);
        else
            questions_add(&l->sent, q);
    }
    watch(l);
}

/* ---- deadlines ------------------------------------------------------------------------------- */

static uint64_t first_deadline(const struct guard_link *l)
{
    uint64_t sent = l->sent.first ? l->sent.first->deadline_ms : UINT64_MAX;
    uint64_t unsent = l->unsent.first ? l->unsent.first->deadline_ms : UINT64_MAX;

    return sent < unsent ? sent : unsent;
}

static void on_timer(uv_timer_t *timer);

static void set_timer(struct guard_link *l)
{
    uint64_t deadline = first_deadline(l), now = uv_now(l->front->loop);

    if (deadline != UINT64_MAX && !uv_is_active((uv_handle_t *)&l->timer))
        uv_timer_start(&l->timer, on_timer, deadline > now ? deadline - now : 0, 0);
}

static void expire(struct guard_link *l, struct questions *qs, uint64_t now)
{
    while (qs->first && qs->first->deadline_ms <= now)
        answer(l, questions_take(qs, &qs->first), -ETIMEDOUT, "", 0, -1);
}

static void on_timer(uv_timer_t *timer)
{
    struct guard_link *l = timer->data;
    uint64_t now = uv_now(l->front->loop);

    expire(l, &l->sent, now);
    expire(l, &l->unsent, now);
    set_timer(l);
    watch(l);
}

/* ---- answers --------------------------------------------------------------------------------- */

static void take_answer(struct guard_link *l, const struct ask *a, int fd)
{
    struct question **at = &l->sent.first;

    while (*at && (*at)->ask.seq != a->seq)
        at = &(*at)->next;
    /* An answer to no known question came too late. */
    if (*at)
        answer(l, questions_take(&l->sent, at), a->code > 0 ? -EPROTO : a->code, a + 1, a->len, fd);
    else
        close_p(&fd);
}

/* Takes messages that were not asked for. A guard that was taken over can tell lies here, and do
 * nothing else. */
static void take_news(struct guard_link *l, struct ask *a)
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
    egress_news_take(l->front, news, kept);
}

/* False: nothing more to read, or the guard is gone. */
static bool take_message(struct guard_link *l)
{
    struct ask *a = (struct ask *)l->buf;
    AUTO(ipc_fds_close) struct ipc_fds fds = {.max = 1};
    ssize_t got = ipc_take(l->sock, GUARD_MAGIC, a, sizeof(*a), MESSAGE_MAX, &fds);

    if (got == -EAGAIN)
        return false;
    if (got < 0 || a->len != (size_t)got - sizeof(*a)) {
        drop_socket(l);
        return false;
    }
    ((char *)(a + 1))[a->len] = '\0';
    if (a->seq != 0) {
        take_answer(l, a, steal_fd(&fds.at[0]));
        return true;
    }
    take_news(l, a);
    return true;
}

static void on_ready(uv_poll_t *poll, int status, int events)
{
    struct guard_link *l = poll->data;

    (void)status;
    if (events & UV_WRITABLE)
        send_waiting(l);
    /* Limited, so that connections get their turn as well. */
    for (int i = 0; i < 64 && l->poll == poll && take_message(l); i++)
        ;
}

/* ---- asking ---------------------------------------------------------------------------------- */

static void copy_id(char ret[ID_LEN + 1], const char *id)
{
    if (id)
        snprintf(ret, ID_LEN + 1, "%s", id);
}

void guard_ask(struct front *f, enum ask_what what, const char *tenant, const char *id,
               const void *payload, size_t len, guard_done done, void *arg)
{
    struct guard_link *l = f->guard;
    struct question *q;

    if (!l || !l->poll || l->n >= GUARD_WAITING_MAX || len > GUARD_PAYLOAD_MAX) {
        if (done)
            done(arg, len > GUARD_PAYLOAD_MAX ? -E2BIG : -EAGAIN, "", 0, -1);
        return;
    }
    q = xcalloc(1, sizeof(*q) + len);
    q->done = done;
    q->arg = arg;
    q->deadline_ms = uv_now(f->loop) + GUARD_WAIT_MS;
    q->len = sizeof(q->ask) + len;
    q->ask =
        (struct ask){.magic = GUARD_MAGIC, .what = what, .seq = ++l->seq, .len = (uint32_t)len};
    copy_id(q->ask.tenant, tenant);
    copy_id(q->ask.id, id);
    if (len > 0)
        memcpy(&q->ask + 1, payload, len);
    l->n++;
    questions_add(&l->unsent, q);
    send_waiting(l);
    set_timer(l);
}

static struct guard_link *link_of(struct front *f)
{
    struct guard_link *l = f->guard;

    if (l)
        return l;
    l = xcalloc(1, sizeof(*l));
    l->front = f;
    l->unsent.last = &l->unsent.first;
    l->sent.last = &l->sent.first;
    l->timer.data = l;
    uv_timer_init(f->loop, &l->timer);
    f->guard = l;
    return l;
}

void guard_set_socket(struct front *f, int fd)
{
    struct guard_link *l = link_of(f);
    uv_poll_t *poll;

    drop_socket(l);
    if (fd < 0)
        return;
    poll = xcalloc(1, sizeof(*poll));
    fd_set_nonblock(fd, true);
    if (uv_poll_init(f->loop, poll, fd) < 0) {
        log_line(LEVEL_ERROR, "front: cannot watch the guard's socket");
        free(poll);
        close(fd);
        return;
    }
    poll->data = l;
    l->poll = poll;
    l->sock = fd;
    l->events = 0;
    watch(l);
}
