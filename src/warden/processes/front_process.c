#include "warden/processes/front_process.h"

#include <stdio.h>
#include <string.h>

#include "lib/log/log.h"
#include "warden/sandboxes/sandbox.h"
#include "warden/orders.h"
#include "warden/server.h"
#include "warden/host/program.h"

#define FRONT_USER "sandglass"
#define FRONT_ID   0x0fff0000u /* if there is no such user: below all ids of sandboxes */

static int take_order(struct server *s, struct child_program *v UNUSED, void *m,
                      struct ipc_fds *fds)
{
    return orders_take(s, m, fds->at);
}

static void greet(struct server *s, struct child_program *v UNUSED)
{
    orders_greet(s);
}

static const struct child_program_kind front_kind = {
    .name = "front",
    .has_log = true,
    .process = PROCESS_FRONT,
    .beat = TELL_BEAT,
    .told_size = sizeof(struct order_answer),
    .greet = greet,
    .magic = ORDER_MAGIC,
    .size = sizeof(struct order),
    .fds_max = ORDER_FDS_MAX,
    .take = take_order,
    .ended = sandboxes_front_gone,
};

int front_process_init(struct server *s, const char *program, struct sg_error *e)
{
    struct child_program *v = &s->front;
    int r;

    child_program_init(v, s, &front_kind);
    v->program = program;
    v->dir = "front";
    r = program_user("front_user", s->settings.front_user, FRONT_USER, FRONT_ID, &v->uid, &v->gid,
                     e);
    return r;
}

void front_process_drain(struct server *s)
{
    struct order_answer a = {.tell = TELL_DRAIN};

    child_program_leave(&s->front);
    front_tell(s, &a, NULL, 0);
}

bool ticket_valid(const struct server *s, const struct ticket *t)
{
    return t->turn != 0 && t->turn == s->front.turn && s->front.link.sock >= 0;
}

void front_tell(struct server *s, struct order_answer *a, const int *fds, size_t n_fds)
{
    child_program_tell(&s->front, a, sizeof(*a), fds, n_fds);
}

void front_answer(struct server *s, const struct ticket *t, struct order_answer *a, int fd)
{
    struct order_answer plain = {0};

    if (!ticket_valid(s, t))
        return;
    if (!a)
        a = &plain;
    a->tell = TELL_REPLY;
    a->seq = t->seq;
    front_tell(s, a, &fd, fd < 0 ? 0 : 1);
}

void front_answer_error(struct server *s, const struct ticket *t, int r, const struct sg_error *e)
{
    struct order_answer a = {.code = r, .error_kind = (int32_t)e->kind};

    snprintf(a.message, sizeof(a.message), "%.255s", e->message);
    front_answer(s, t, &a, -1);
}
