/* A tenant pool: the domain of one tenant, and the sandboxes that wait ready in it.
 *
 *   a start:   asked for ---------> starting ---------> ready ----------> taken
 *              (of the spawner)     (its own word)      (in the pool)     (by a request it fits)
 *
 * Starts are made one after the other, because a domain's spawner clones one at a time; several may
 * be starting at once. When the spawner has answered, the start goes to the first request that
 * waits, or to the pool if none does. A request for the plain template and the usual limits takes a
 * sandbox from the pool at once, and so does one for a template that was used of late (recent_templates.h).
 *
 * The pool's size follows demand, between pool_min and pool_max: it is the number of sandboxes
 * taken in the busiest second of late, less an eighth for each second since. Refilling is idle
 * work. While the pool is at least half full, refilling also pauses after each sandbox that was
 * taken, whose first work would have to share the processors with it.
 *
 * A sandbox that waits in the pool is prepared further: its way out is set up (unless most
 * sandboxes have none, egress_e2b_default), and it gets a kernel. Where sandboxes are copied, one
 * in the pool is left without a kernel, for the next copy.
 *
 * Under pressure (pressure.h) nothing waits in pools.
 *
 * A tenant pool that nobody has used for `tenant_idle` is closed. A tenant pool whose spawner has
 * died takes no more requests, and is closed when its last sandbox is gone; the tenant gets
 * another, and the waiting requests move there. */
#pragma once

#include <string.h>

#include "wire/warden.h"
#include "warden/providers/provider.h"
#include "warden/processes/heartbeat.h"
#include "warden/processes/domain_processes.h"

struct server;
struct snapshot;
struct start;

/* Called exactly once for each request: i runs and belongs to the callee; or it is NULL, and e says
 * why. */
typedef void (*tenant_pool_done)(void *arg, struct instance *i, const struct sg_error *e);

/* How many sandboxes are taken: this second; in the busiest second of late. */
struct demand {
    uint32_t taken, most;
};
/* Call it once a second: the busiest one is forgotten by an eighth. */
void demand_tick(struct demand *d);

struct tenant_pool_request {
    struct sg_limits limits;
    struct snapshot *snapshot; /* NULL: the plain template. Must stay until done */
    bool bare;                 /* a sandbox without a kernel is preferred */
    bool moved;                /* has moved to another tenant pool, once */
    bool pooled;               /* result: the sandbox came from the pool */
    uint32_t files_usec;       /* result: how long its root over the snapshot took */
    tenant_pool_done done;
    /* Called when the tenant pool has broken while the request waited, and the request moves to
     * another. NULL: the request fails instead. */
    void (*on_moved)(void *arg, struct tenant_pool *to);
    void *arg;
    struct list link;
};

/* See kernels.h. */
struct tenant_pool_kernels {
    enum { KERNELS_OFF, KERNELS_HOMELESS, KERNELS_LOADING, KERNELS_READY, KERNELS_RESTING } state;
    bool plain; /* kernels are made by plain fork, not copied */
    struct instance *home;
    struct tenant_pool_request request; /* HOMELESS: for the home */
    struct loop_source broker, home_end;
    struct loop_timer rest;
    uint64_t rest_ns;  /* how long the next rest is */
    uint64_t ready_ns; /* READY: since when */
    bool proved;       /* READY: it has made a kernel */
    bool again;        /* an earlier zygote had proved itself */
};

struct tenant_pool {
    struct list link;
    struct server *server;
    char tenant[ORDER_TENANT_LEN + 1];
    struct provider *provider;
    struct scratch_share *share; /* of the scratch store; NULL: disks are in memory */
    bool broken;                 /* takes no more requests */
    bool spawner_gone;
    struct loop_source spawner;
    struct start *asked;  /* the spawner has not answered yet */
    struct list starts;   /* starting and ready */
    struct list requests; /* that wait for a start */
    uint32_t n_ready;     /* of the plain template and of recent templates */
    uint32_t n_out;       /* sandboxes that were taken and are not gone */
    struct demand demand; /* for the plain template */
    struct list recent;   /* see recent_templates.h */
    uint64_t idle_since_ns, refused_ns;
    uint64_t calm_ns;       /* until when the pool is not refilled, if it is half full */
    uint64_t bare_until_ns; /* until when one pooled sandbox stays without a kernel */
    struct loop_timer tick, calm;
    uint64_t ooms, full_ns; /* see tenant_pool_full_ns */
    struct tenant_pool_kernels kernels;
    struct list zygotes;                   /* see zygotes.h */
    struct heartbeat hearts[PROCESS_MAX_]; /* see domain_processes.h */
    bool hung[PROCESS_MAX_];               /* killed because it hung */
};

/* The name for no tenant. Its tenant pool is for probes: it keeps no sandboxes ready, has no
 * kernels, and room for one probe. */
#define TENANT_POOL_NOBODY "nobody"
static inline bool tenant_pool_is_nobodys(const struct tenant_pool *w)
{
    return strcmp(w->tenant, TENANT_POOL_NOBODY) == 0;
}

/* The tenant's pool; opens one if there is none. */
int tenant_pool_get(struct server *s, const char *tenant, struct tenant_pool **ret,
                    struct sg_error *e);
/* `request` stays the caller's. done may be called before this returns. */
void tenant_pool_request(struct tenant_pool *w, struct tenant_pool_request *request);
/* Takes a ready sandbox with these limits, which is the caller's from now on. NULL: none is
 * ready. */
struct instance *tenant_pool_take(struct tenant_pool *w, const struct sg_limits *limits);
/* Replaces limits that are 0 by the server's, and checks the bounds of the others. */
int tenant_pools_complete_limits(const struct server *s, struct sg_limits *l, struct sg_error *e);
void tenant_pools_usual_limits(const struct server *s, struct sg_limits *ret); /* if all are 0 */
/* For kernels.c: a pooled sandbox has got its kernel, or will not get it. */
void tenant_pool_fed(struct tenant_pool *w, struct instance *i, bool has_kernel);
/* Empties all pools; returns how many sandboxes were in them. They stay empty while pressure
 * lasts. */
uint32_t tenant_pools_let_go(struct server *s);
/* Tells the budget what each tenant has in use. */
void tenant_pools_measure(struct server *s);
/* When the kernel last killed because the tenant's sandboxes had reached tenant_memory; 0:
 * never. */
uint64_t tenant_pool_full_ns(struct tenant_pool *w);
/* Applies a changed tenant_memory. */
void tenant_pools_limit(struct server *s);
/* A sandbox that was taken is gone. */
void tenant_pool_return(struct tenant_pool *w);
/* The tenant pool takes no more requests, and is closed when its last sandbox is gone. */
void tenant_pool_give_up(struct tenant_pool *w);
/* After a change of settings: replaces all sandboxes that wait in pools. */
void tenant_pools_renew(struct server *s);
/* Does a small piece of idle work; true if there is more. */
bool tenant_pools_idle(struct server *s);
/* Frees descriptors that are only kept for later: those of one slot, or else those of a tenant pool
 * that nobody uses. False: there are none. */
bool tenant_pools_relieve(struct server *s);
/* Ends all tenant pools and their sandboxes, and waits until they are gone. */
void tenant_pools_close(struct server *s);
