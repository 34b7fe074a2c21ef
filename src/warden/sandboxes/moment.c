#include "warden/sandboxes/moment.h"

#include <stdio.h>
#include <string.h>

#include "lib/log/log.h"
#include "warden/providers/process/process.h"
#include "warden/processes/front_process.h"
#include "warden/sandboxes/layer.h"
#include "warden/server.h"
#include "warden/sandboxes/unborn.h"
#include "warden/sandboxes/ward.h"
#include "warden/layers/strata.h"

struct moment *moment_new(struct server *s, const char *tenant, const char *guest)
{
    struct moment *m = xcalloc(1, sizeof *m);

    *m = (struct moment){.server = s, .next = s->moments, .users = 1, .written = -1, .note = -1};
    snprintf(m->tenant, sizeof m->tenant, "%s", tenant);
    snprintf(m->guest, sizeof m->guest, "%s", guest);
    s->moments = m;
    return m;
}

void moment_name(struct moment *m, const char *name)
{
    snprintf(m->name, sizeof m->name, "%s", name);
    m->users++;
}

struct moment *moment_find(struct server *s, const char *name)
{
    for (struct moment *m = s->moments; m; m = m->next)
        if (m->name[0] && strcmp(m->name, name) == 0)
            return m;
    return NULL;
}

struct moment *moment_use(struct moment *m)
{
    m->users++;
    return m;
}

static void moment_free(struct moment *m)
{
    for (struct moment **p = &m->server->moments; *p; p = &(*p)->next)
        if (*p == m) {
            *p = m->next;
            break;
        }
    close_p(&m->written);
    close_p(&m->note);
    free(m);
}

void moment_release(struct moment *m)
{
    if (!m || --m->users > 0)
        return;
    unborn_drop(steal_ptr(&m->unborn));
    if (m->ward) {
        provider_mould_drop(m->ward->provider, m->mould);
        moment_without_mould(m);
    }
    stack_free(m->stack);
    layer_release(m->server, m->layer);
    moment_free(m);
}

void moment_forget(struct moment *m)
{
    if (!m->name[0])
        return;
    m->name[0] = '\0';
    moment_release(m);
}

void moment_has_mould(struct moment *m, struct ward *w, uint64_t mould)
{
    m->ward = w;
    m->mould = mould;
    w->n_out++;
}

void moment_without_mould(struct moment *m)
{
    struct ward *w = m->ward;

    m->ward = NULL;
    m->mould = 0;
    if (w)
        ward_return(w);
}

/* ---- on disk --------------------------------------------------------------------------------- */

struct saving {
    struct moment *moment;
    struct ticket ticket;
};

static void on_saved(void *arg, struct layer *l, uint64_t bytes, const struct sg_error *e)
{
    struct saving *v = arg;
    struct server *s = v->moment->server;
    struct order_answer a = {.stats.disk_bytes = bytes};
    bool wanted = ticket_valid(s, &v->ticket) && v->moment->name[0];

    if (!l || !wanted)
        moment_forget(v->moment);
    if (l && !wanted)
        layer_forget(s, l);
    if (l)
        front_answer(s, &v->ticket, &a, -1);
    else
        front_answer_error(s, &v->ticket, e->code, e);
    layer_release(s, l);
    moment_release(v->moment);
    free(v);
}

void moment_save(struct moment *m, const struct ticket *t)
{
    struct save_order o = {.name = m->name, .durable = true, .below = m->layer, .stack = m->stack};
    struct saving *v = xcalloc(1, sizeof *v);
    struct sg_error e = {0};

    *v = (struct saving){.moment = moment_use(m), .ticket = *t};
    if (!layer_save(m->server, &o, on_saved, v, &e))
        on_saved(v, NULL, 0, &e);
}

/* ---- what the front is told ------------------------------------------------------------------ */

static void tell(struct moment *m, enum order_tell what)
{
    struct order_answer a = {.tell = what};

    memcpy(a.layer, m->name, sizeof a.layer);
    memcpy(a.tenant, m->tenant, sizeof a.tenant);
    memcpy(a.id, m->guest, sizeof a.id);
    front_tell(m->server, &a, NULL, 0);
}

static void lose(struct moment *m)
{
    if (m->name[0])
        tell(m, TELL_KERNELS_LOST);
    moment_without_mould(m);
}

/* From the beginning after each: what a ward gets back may let go of others. */
void moments_lost(struct server *s, struct ward *w, uint64_t mould)
{
    struct moment *m = s->moments;

    while (m) {
        bool lost = m->ward == w && (mould == 0 || m->mould == mould);
        if (lost)
            lose(m);
        m = lost ? s->moments : m->next;
    }
}

/* New ones are put in front. */
bool moments_let_go(struct server *s)
{
    struct moment *oldest = NULL;

    for (struct moment *m = s->moments; m; m = m->next)
        if (m->ward && m->name[0] && m->users == 1)
            oldest = m;
    if (!oldest)
        return false;
    unborn_drop(steal_ptr(&oldest->unborn));
    provider_mould_drop(oldest->ward->provider, oldest->mould);
    log_line(LEVEL_WARN, "memory is short: the kernels of a checkpoint were let go");
    lose(oldest);
    return true;
}

void moments_home_gone(struct server *s, struct ward *w)
{
    struct moment *m = s->moments;

    while (m) {
        bool lost = m->ward == w && m->keep;
        if (lost)
            lose(m);
        m = lost ? s->moments : m->next;
    }
}

void moments_guest_gone(struct server *s, const char *guest)
{
    struct moment *m = s->moments;

    while (m) {
        bool its = strcmp(m->guest, guest) == 0, ends = its && !m->keep && m->name[0];
        if (ends)
            tell(m, TELL_CHECKPOINT_GONE);
        if (its)
            m->guest[0] = '\0';
        if (ends)
            moment_forget(m);
        m = ends ? s->moments : m->next;
    }
}

void moments_introduce(struct server *s)
{
    for (struct moment *m = s->moments; m; m = m->next) {
        struct order_answer a = {.tell = TELL_CHECKPOINT,
                                 .flags = m->ward ? TELL_KERNELS : 0,
                                 .stats.memory_used = m->memory_bytes};

        if (!m->name[0])
            continue;
        memcpy(a.layer, m->name, sizeof a.layer);
        memcpy(a.tenant, m->tenant, sizeof a.tenant);
        memcpy(a.id, m->guest, sizeof a.id);
        lseek(m->note, 0, SEEK_SET);
        front_tell(s, &a, &m->note, 1);
    }
}

void moments_close(struct server *s)
{
    while (s->moments) {
        struct moment *m = s->moments;

        unborn_drop(m->unborn);
        stack_free(m->stack);
        moment_free(m);
    }
}
