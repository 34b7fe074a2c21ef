/* A tenant pool: the domain of one tenant, and the sandboxes that wait ready in it.
 *
 *   a start:   asked for ------> starting ------> ready (pool) ------> taken
 *              (the spawner)   (its own word)        ^    by a request that it fits
 *
 * Starts are made one after the other, because a domain's spawner clones one at a time; several may
 * be starting. What a start becomes is decided when the spawner has answered: the first request
 * that waits gets it, and if none does, it goes to the pool. A request that asks for the plain
 * template and the usual limits takes one from the pool at once.
 *
 * The pool's size follows demand: what was taken in the busiest second of late, which is forgotten
 * by an eighth each second, between pool_min and pool_max. Refilling is idle work; while the pool
 * is at least half full it also waits for a moment after each sandbox that was taken, whose first
 * work would have to share the processors with it. What waits is made ready further: its way out is
 * prepared (unless most sandboxes have none, egress_e2b_default), and it gets a kernel; but for one
 * that is left for the next copy of a sandbox, where copies are made.
 *
 * Under pressure (pressure.h) nothing waits in pools.
 *
 * A tenant pool that nobody has used for `tenant_idle` is closed. One whose spawner has died takes
 * no more requests, and is closed when its last sandbox is gone; the tenant gets another, and who
 * waited waits there. */
#pragma once

#include "wire/warden.h"
#include "warden/providers/process/process.h"
#include "warden/processes/heartbeat.h"
#include "warden/processes/domain_processes.h"

struct server;
struct snapshot;
struct start;

/* Exactly one call for each request: i is running and the callee's, or NULL and e says why. */
typedef void (*tenant_pool_done)(void *arg, struct instance *i, const struct sg_error *e);

struct tenant_pool_request {
    struct sg_limits limits;
    struct snapshot *snapshot; /* NULL: the plain template. Stays there until done */
    bool bare;                 /* the kernel that it may have is not wanted */
    bool moved;                /* to another tenant pool, once */
    bool pooled;               /* told when it is done: it came from the pool */
    uint32_t files_usec;       /* the same: how long its root over the layer took */
    tenant_pool_done done;
    /* Its tenant pool has broken while it waited, and it waits at another. NULL: it fails instead.
     */
    void (*on_moved)(void *arg, struct tenant_pool *to);
    void *arg;
    struct tenant_pool_request *next;
};

/* See kernels.h. */
struct tenant_pool_kernels {
    enum { KERNELS_OFF, KERNELS_HOMELESS, KERNELS_LOADING, KERNELS_READY, KERNELS_RESTING } state;
    bool plain; /* not by twins */
    struct instance *home;
    struct tenant_pool_request request; /* HOMELESS */
    struct event_source broker, home_end;
    struct timer rest;
    uint64_t rest_ns;  /* how long the next rest is */
    uint64_t ready_ns; /* READY: since when */
    bool proved;       /* READY: a kernel was made */
    bool again;        /* there was one before that had proved itself */
};

struct tenant_pool {
    struct tenant_pool *next;
    struct server *server;
    char tenant[ORDER_TENANT_LEN + 1];
    struct provider *provider;
    bool broken; /* takes no more requests */
    bool spawner_gone;
    struct event_source spawner;
    struct start *asked;  /* not answered by the spawner */
    struct start *starts; /* starting and ready */
    struct tenant_pool_request *requests, **requests_end;
    uint32_t n_starting, n_ready;
    uint32_t n_out;         /* sandboxes that were taken and are not gone */
    uint32_t taken, demand; /* this second; of late */
    uint64_t idle_since_ns, refused_ns;
    uint64_t calm_ns;       /* until when the pool is not refilled, if it is half full */
    uint64_t bare_until_ns; /* until when one of the pool is left without a kernel */
    struct timer tick, calm;
    uint64_t ooms, full_ns; /* see tenant_pool_full_ns */
    struct tenant_pool_kernels kernels;
    struct heartbeat hearts[HELPER_MAX_]; /* see domain_processes.h */
    bool hung[HELPER_MAX_];               /* killed for that */
};

/* A tenant that is none: its tenant pool has neither pool nor kernels, and room for a probe. */
#define TENANT_POOL_NOBODY "nobody"

/* The tenant's; opened if there is none. */
int tenant_pool_get(struct server *s, const char *tenant, struct tenant_pool **ret,
                    struct sg_error *e);
/* `request` stays the caller's until it is done. It may be done before this returns. */
void tenant_pool_request(struct tenant_pool *w, struct tenant_pool_request *request);
/* One that is ready and like that, the caller's from now on; NULL: there is none just now. */
struct instance *tenant_pool_take(struct tenant_pool *w, const struct sg_limits *limits);
/* For kernels.c: limits that the pool's sandboxes have; the sandboxes of the pool that have no
 * kernel yet are to be fed; one of them has its kernel now, or has not got it. */
void tenant_pool_usual_limits(const struct tenant_pool *w, struct sg_limits *ret);
void tenant_pool_feed_all(struct tenant_pool *w);
void tenant_pool_fed(struct tenant_pool *w, struct instance *i, bool has_kernel);
/* All pools are emptied; returns how many sandboxes that were. While pressure lasts they stay so.
 */
uint32_t tenant_pools_let_go(struct server *s);
/* Tells the budget what each tenant has in use. */
void tenant_pools_measure(struct server *s);
/* When the kernel last killed because the tenant's sandboxes were at tenant_memory; 0: never. */
uint64_t tenant_pool_full_ns(struct tenant_pool *w);
/* After a change of tenant_memory. */
void tenant_pools_limit(struct server *s);
/* A sandbox that was taken is gone. */
void tenant_pool_return(struct tenant_pool *w);
/* It takes no more requests, and is closed when its last sandbox is gone. */
void tenant_pool_give_up(struct tenant_pool *w);
/* After a change of settings: the pool's sandboxes are made anew. */
void tenant_pools_renew(struct server *s);
/* A small piece of work; true if there is more. */
bool tenant_pools_idle(struct server *s);
/* Gives descriptors back that are only kept for later: those of a slot, else a tenant pool that
 * nobody uses. False: there are none. */
bool tenant_pools_relieve(struct server *s);
/* Ends everything, waits for it. */
void tenant_pools_close(struct server *s);
