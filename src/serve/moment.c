#include "serve/moment.h"

#include <stdio.h>
#include <string.h>

#include "provider/process.h"
#include "serve/layer.h"
#include "serve/server.h"
#include "serve/ward.h"
#include "warden/strata.h"

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

static void tell(struct moment *m, enum order_tell what)
{
    struct order_answer a = {.tell = what};

    memcpy(a.layer, m->name, sizeof a.layer);
    memcpy(a.tenant, m->tenant, sizeof a.tenant);
    memcpy(a.id, m->guest, sizeof a.id);
    front_tell(m->server, &a, NULL, 0);
}

void moments_lost(struct server *s, struct ward *w, uint64_t mould)
{
    for (struct moment *m = s->moments; m; m = m->next) {
        if (m->ward != w || (mould && m->mould != mould))
            continue;
        moment_without_mould(m);
        if (m->name[0])
            tell(m, TELL_KERNELS_LOST);
    }
}

void moments_guest_gone(struct server *s, const char *guest)
{
    struct moment *next;

    for (struct moment *m = s->moments; m; m = next) {
        next = m->next;
        if (strcmp(m->guest, guest) != 0)
            continue;
        if (!m->keep && m->name[0]) {
            tell(m, TELL_CHECKPOINT_GONE);
            m->guest[0] = '\0';
            moment_forget(m);
        } else {
            m->guest[0] = '\0';
        }
    }
}

void moments_introduce(struct server *s)
{
    for (struct moment *m = s->moments; m; m = m->next) {
        struct order_answer a = {.tell = TELL_CHECKPOINT, .flags = m->ward ? TELL_KERNELS : 0};

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

        stack_free(m->stack);
        moment_free(m);
    }
}
