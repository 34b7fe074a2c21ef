/* A guest: a sandbox as the server keeps it, from its order to its end.
 *
 *   making -> RUNNING <-> freezing -> PAUSED
 *                |  ^        |  ^        |
 *                |  |        v  |        |
 *                |  +----- saving <------+     files are being written, nothing runs
 *                |           |  ^
 *                |           v  |
 *                |       stowing -> STORED -> booting -> RUNNING
 *                |  ^
 *                v  |
 *              keeping                       a moment is made of it: guest_fork.c
 *
 *   making -> branching -> RUNNING -> branching -> RUNNING   from a moment, back to one:
 * guest_branch.c (any) --> ending --> gone
 *
 * In the phases in capitals it waits for orders. In the others a job is under way; orders that come
 * meanwhile wait, but for its end, its deadline, its note and its figures. A job whose order came
 * from a front that is gone is finished all the same where it changes a sandbox that others know
 * of: the next front is told as if it had happened by itself. One that was being made is ended,
 * because nobody knows of it. */
#pragma once

#include "wire/guard.h"
#include "wire/warden.h"

struct server;
struct guest;
struct layer;
struct moment;
struct ward;
struct ticket;
struct kernel_news;

/* One that has ended, as a front is told of it. */
struct guest_ended {
    char id[ID_LEN + 1], tenant[ORDER_TENANT_LEN + 1];
    enum order_end why;
    const char *text; /* more of it, or NULL */
};

/* A policy document (wire/policy_document.h), on the heap; without text: nothing goes out. */
struct policy_text {
    char *text;
    size_t len;
};

struct guest *guest_find(struct server *s, const char *id);
const char *guest_tenant(const struct guest *g);
/* All that was checked before: the id is free, limits are complete. Takes note and policy over. */
void guest_create(struct server *s, const struct ticket *t, const struct order *o,
                  struct layer *layer, struct moment *moment, int note,
                  const struct policy_text *policy);
/* Live fork. Takes the note over. */
void guest_checkpoint(struct guest *g, const struct ticket *t, const struct order *o, int note);
void guest_back_to(struct guest *g, const struct ticket *t, const struct order *o,
                   struct moment *m);
/* What the broker says of a guest's instance. */
void guest_still(struct guest *g, const struct kernel_news *news);
void guest_held(struct guest *g, const struct kernel_news *news, int r, const struct sg_error *e);
void guest_went(struct guest *g, const struct kernel_news *news, int r, const struct sg_error *e);
/* False: it had not asked for a copy. */
bool guest_copied(struct guest *g, int r, const struct sg_error *e);
/* Kernels that its guests asked for can be had now, or not. */
void guests_ask_again(struct server *s, struct ward *w);
/* The broker of a ward has ended. */
void guests_broker_gone(struct server *s, struct ward *w);
void guest_note(struct guest *g, const struct ticket *t, int note);
void guest_deadline(struct guest *g, const struct ticket *t, uint64_t deadline_ns,
                    enum order_expiry on_expiry);
void guest_kill(struct guest *g, const struct ticket *t);
void guest_stats(struct guest *g, const struct ticket *t);
/* Takes the policy over. */
void guest_policy(struct guest *g, const struct ticket *t, const struct policy_text *policy);
/* ORDER_PAUSE, ORDER_RESUME, ORDER_SNAPSHOT. */
void guest_order(struct guest *g, const struct ticket *t, const struct order *o);

/* The holder of a ward has ended, and all that ran in it with it. */
void guests_holder_gone(struct server *s, struct ward *w);
/* The front has ended. */
void guests_front_gone(struct server *s);
/* Tells a new front of each that lives. */
void guests_introduce(struct server *s);
/* Of the last that have ended, and of those that are about to: a front that takes over was told of
 * none that ended while there was no other. */
void guests_tell_ends(struct server *s);
/* What the guard says of one of them. */
void guests_policy_applied(struct server *s, const struct guard_message *m);
void guests_ask_udp(struct server *s, const struct guard_message *m);
/* Tells a new guard of each that has a way out. */
void guests_introduce_guard(struct server *s);
void guests_guard_gone(struct server *s);
/* How many run, are paused, are stored. */
void guests_count(const struct server *s, struct order_figures *ret);
/* Forgets them all; the wards end them. */
void guests_close(struct server *s);
