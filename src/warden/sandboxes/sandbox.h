/* A sandbox as the server keeps it, from its order to its end. sandbox_life.h has its states. */
#pragma once

#include "wire/guard.h"
#include "wire/warden.h"

struct server;
struct sandbox;
struct snapshot;
struct checkpoint;
struct tenant_pool;
struct ticket;
struct sandbox_volumes;

/* A sandbox that has ended, as a front is told of it. */
struct sandbox_ended {
    char id[ID_LEN + 1], tenant[ORDER_TENANT_LEN + 1];
    enum order_end why;
    const char *text; /* details, or NULL */
};

/* A policy document (wire/policy_document.h), on the heap. Without text the sandbox reaches
 * nothing. */
struct policy_text {
    char *text;
    size_t len;
};

struct sandbox *sandbox_find(struct server *s, const char *id);
const char *sandbox_tenant(const struct sandbox *g);
/* It takes orders no more, but for its end and its figures. */
bool sandbox_is_ending(const struct sandbox *g);
/* Makes a sandbox. The caller has checked the order: the id is free, the limits are complete. Takes
 * note, policy and volumes over. */
void sandbox_create(struct server *s, const struct ticket *t, const struct order *o,
                    struct snapshot *snapshot, struct checkpoint *checkpoint, int note,
                    const struct policy_text *policy, const struct sandbox_volumes *volumes);
/* Live fork: makes a checkpoint of a running sandbox. Takes the note over. */
void sandbox_checkpoint(struct sandbox *g, const struct ticket *t, const struct order *o, int note);
void sandbox_back_to(struct sandbox *g, const struct ticket *t, const struct order *o,
                     struct checkpoint *m);
/* False: the sandbox had not asked for a copy. */
bool sandbox_copied(struct sandbox *g, int r, const struct sg_error *e);
/* The zygote is loaded, or will not be: sandboxes that wait for a kernel ask again. */
void sandboxes_ask_again(struct server *s, struct tenant_pool *w);
/* The sandbox's agent starts a kernel itself, and this is why: the front is told. */
void sandbox_kernel_is_cold(struct sandbox *g, const char *why);
/* The broker of a tenant pool has ended. */
void sandboxes_broker_gone(struct server *s, struct tenant_pool *w);
void sandbox_note(struct sandbox *g, const struct ticket *t, int note);
void sandbox_deadline(struct sandbox *g, const struct ticket *t, uint64_t deadline_ns,
                      enum order_expiry on_expiry);
void sandbox_kill(struct sandbox *g, const struct ticket *t);
/* What differs between its files and those of a snapshot, or NULL (diff.h). */
int sandbox_diff(const struct sandbox *g, struct snapshot *against, int list,
                 const struct ticket *t, struct sg_error *e);
void sandbox_stats(struct sandbox *g, const struct ticket *t);
/* Takes the policy over. */
void sandbox_policy(struct sandbox *g, const struct ticket *t, const struct policy_text *policy);
/* ORDER_PAUSE, ORDER_RESUME, ORDER_SNAPSHOT. */
void sandbox_order(struct sandbox *g, const struct ticket *t, const struct order *o);

/* The holder of a tenant pool has ended, and with it everything that ran in the domain. */
void sandboxes_holder_gone(struct server *s, struct tenant_pool *w);
/* The front has ended. */
void sandboxes_front_gone(struct server *s);
/* Tells a new front of every living sandbox. */
void sandboxes_introduce(struct server *s);
/* Tells a new front of the sandboxes that ended last, and of those that are about to end: nobody
 * was told of a sandbox that ended while there was no front. */
void sandboxes_tell_ends(struct server *s);
/* News of the guard about a sandbox. */
void sandboxes_policy_applied(struct server *s, const struct guard_message *m);
void sandboxes_ask_udp(struct server *s, const struct guard_message *m);
/* Tells a new guard of every sandbox that has a way out. */
void sandboxes_introduce_guard(struct server *s);
void sandboxes_guard_gone(struct server *s);
/* How many run, are paused, are stored. */
void sandboxes_count(const struct server *s, struct order_figures *ret);
/* Forgets all sandboxes; the tenant pools end them. */
void sandboxes_close(struct server *s);
