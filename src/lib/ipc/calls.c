#include "lib/ipc/calls.h"

#include <string.h>

#include "lib/base/clock.h"

#define PLACE_BITS  20
#define CALLS_FIRST 16

static struct ipc_call *find_call(const struct ipc_link *l, uint64_t seq)
{
    size_t place = seq & ((1u << PLACE_BITS) - 1);

    return seq != 0 && place < l->n_calls && l->calls[place].seq == seq ? &l->calls[place] : NULL;
}

static void grow(struct ipc_link *l)
{
    uint32_t n = l->n_calls ? l->n_calls * 2 : CALLS_FIRST;
    struct ipc_call *calls = xcalloc(n, sizeof(*calls));

    if (l->n_calls > 0)
        memcpy(calls, l->calls, l->n_calls * sizeof(*calls));
    free(l->calls);
    l->calls = calls;
    l->n_calls = n;
}

static struct ipc_call *free_place(struct ipc_link *l)
{
    uint32_t n = l->n_calls;

    if (!ipc_below(l->n_open, l->kind->calls_max) || l->n_open >= 1u << PLACE_BITS)
        return NULL;
    /* The search goes on where the last one ended, so it is short. */
    for (uint32_t i = 0; i < n; i++)
        if (l->calls[(l->n_called + i) % n].seq == 0)
            return &l->calls[(l->n_called + i) % n];
    grow(l);
    return &l->calls[n];
}

static int settle(struct ipc_call *c, struct ipc_in *in)
{
    struct ipc_call copy = *c;

    c->seq = 0;
    in->link->n_open--;
    return in->link->kind->answer(&copy, in);
}

/* Answers the calls that are due by then. An owner may call anew meanwhile, which may move the
 * table. */
static void give_up(struct ipc_link *l, uint64_t due_ns, int r)
{
    struct ipc_in none = {.link = l, .r = r};

    memset(none.fds.at, -1, sizeof(none.fds.at));
    for (uint32_t i = 0; i < l->n_calls && l->n_open > 0; i++)
        if (l->calls[i].seq != 0 && l->calls[i].due_ns <= due_ns)
            settle(&l->calls[i], &none);
}

static const struct ipc_calling calling = {.find = find_call, .settle = settle, .give_up = give_up};

int ipc_link_call(struct ipc_link *l, const struct ipc_out *out, void (*done)(void), void *arg)
{
    uint64_t wait = l->kind->wait_ns;
    struct ipc_call *c = free_place(l);
    struct ipc_head *head = out->head;
    int r;

    l->calling = &calling;
    if (!c)
        return l->sock < 0 ? -EPIPE : -EAGAIN;
    head->seq = ++l->n_called << PLACE_BITS | (uint64_t)(c - l->calls);
    r = ipc_link_put(l, out, head->seq);
    if (r < 0)
        return r;
    *c = (struct ipc_call){.seq = head->seq,
                           .done = done,
                           .arg = arg,
                           .due_ns = wait ? clock_ns() + wait : UINT64_MAX};
    if (l->n_open++ == 0)
        l->changed(l);
    return 0;
}

uint64_t ipc_link_due(const struct ipc_link *l)
{
    uint64_t due = UINT64_MAX;

    for (uint32_t i = 0; i < l->n_calls && l->n_open > 0 && l->kind->wait_ns; i++)
        if (l->calls[i].seq != 0 && l->calls[i].due_ns < due)
            due = l->calls[i].due_ns;
    return due;
}

void ipc_link_expire(struct ipc_link *l)
{
    give_up(l, clock_ns(), -ETIMEDOUT);
    l->changed(l);
}
