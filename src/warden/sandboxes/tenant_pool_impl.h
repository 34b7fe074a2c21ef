/* Shared by the files tenant_pool*.c, each of which uses the ones above it alone:
 *
 *   tenant_pool_starts.c    one start, from the spawner's answer until it is taken or has failed
 *   tenant_pool_filling.c   the starts that nobody has asked for: how many, of what, how they are
 *                           prepared, and which of them are too many
 *   tenant_pool_requests.c  which request gets which start, and when the spawner is asked for one
 *   tenant_pool.c           tenant pools are opened, looked at once a second, and closed */
#pragma once

#include "warden/sandboxes/tenant_pool.h"

#define TENANT_POOL_SECOND_NS 1000000000ull

struct start {
    struct tenant_pool *tenant_pool;
    struct list link; /* in tenant_pool.starts, but not while asked for */
    struct instance *instance;
    struct sg_limits limits;
    struct snapshot *snapshot; /* that it is made of; NULL: the template alone */
    bool ready;
    bool fed;                          /* its agent has a kernel */
    bool tried;                        /* to prepare its way out */
    struct tenant_pool_request *owner; /* the request that gets it; NULL: the pool */
    struct loop_source line;           /* starting: it says that it is up. Ready: its end */
    struct loop_timer timer;
};

/* tenant_pool_starts.c */
/* Goes on with a start that the spawner has answered: owner, snapshot and limits are set. If that
 * fails the caller ends it with start_fail. */
int start_go_on(struct start *b, struct sg_error *e);
/* Removes the start; its sandbox stays. */
void start_free(struct start *b);
/* The same, and its sandbox ends. */
void start_end(struct start *b);
/* The same, and its owner is told. */
void start_fail(struct start *b, const struct sg_error *e);
void start_hand_over(struct start *b, struct tenant_pool_request *to);
bool start_fits(const struct start *b, const struct tenant_pool_request *q);
/* Whether one like this is to wait in the pool, as settings and templates are now. */
bool start_is_wanted(const struct start *b);
/* A start for the pool could not be made: the next is tried in a second. */
void start_refused(struct tenant_pool *w, const struct sg_error *e);

/* tenant_pool_filling.c */
bool filling_is_wanted(const struct tenant_pool *w);
/* Says what a start is to be that is for the pool: what the pool lacks most. */
void filling_decide(struct start *b);
/* A request came: the pool's size follows. */
void filling_count(struct tenant_pool *w, const struct tenant_pool_request *q);
/* A sandbox was taken: its work comes before refilling. That work is longer if the sandbox gets
 * files and kernels of another (bare). */
void filling_pause(struct tenant_pool *w, bool bare);
/* Once a second: ends sandboxes that are too many. */
void filling_shrink(struct tenant_pool *w);
void filling_empty(struct tenant_pool *w);
/* Does a small piece of work for one that waits; false: there is none. */
bool filling_prepare(struct tenant_pool *w);

/* tenant_pool_requests.c */
/* Asks the spawner for the next start if a request waits, and listens for its answer. */
void requests_push(struct tenant_pool *w);
/* Asks the spawner for a start. */
int requests_ask(struct tenant_pool *w, struct sg_error *e);
/* The spawner has answered: the first request gets the start, or the pool if none waits. */
void requests_go_on(struct tenant_pool *w);
struct tenant_pool_request *requests_next(struct tenant_pool *w);
/* The spawner has ended. The tenant pool takes no more requests; sandboxes that run in it go on. */
void requests_break(struct tenant_pool *w);
