/* The zygote of a domain: see twin.h.
 *
 *   none --zygote_begin--> loading --its word Q, zygote_hold--> held --> (it dies) none
 *
 * Held: stopped inside the read of descriptor 3 that it idles in, with nothing open but 0 to 3, and
 * with a page of ours in its memory (tables.h). Descriptor 3 is then the lower end of the chute. A
 * plain one is not held but asked. */
#pragma once

#include "inside/stage/seccomp.h"
#include "inside/broker/source.h"
#include "inside/broker/twin.h"

/* Where copies get their descriptors from. Whatever is copied from a zygote, over any number of
 * generations, has its lower end as descriptor 3; so there is one, for as long as the broker lives.
 */
struct chute {
    int top, bottom;
};
int chute_open(struct chute *ret, struct sg_error *e);
/* A copy has failed: takes back what it may not have received, so that no other gets it. */
void chute_clear(const struct chute *c);

struct zygote {
    struct source source;
    bool held;
    bool broken;                       /* held, and not to be used again */
    bool plain;                        /* awake: it forks itself when it is asked on `control` */
    int control;                       /* loading: its descriptor 3 */
    uint64_t deadline_ns;              /* loading */
    pid_t ahead;                       /* held: a copy that waits to be used; 0: none */
    const struct seccomp_prog *filter; /* of every copy */
};

#define ZYGOTE_NONE   \
    {                 \
        .control = -1 \
    }

/* fds as TWIN_ZYGOTE_FDS, then doors; they stay the caller's. */
int zygote_begin(struct zygote *z, const struct chute *c, const struct twin_request *q,
                 const int *fds, struct sg_error *e);
/* The control socket is readable, or the deadline is over: 1 held, 0 not yet, or why not. */
int zygote_hold(struct zygote *z, const struct seccomp_prog *filter, struct sg_error *e);
/* Kills it. Its copies stay. */
void zygote_end(struct zygote *z);
/* It has died by itself, and is reaped. */
void zygote_lost(struct zygote *z);
