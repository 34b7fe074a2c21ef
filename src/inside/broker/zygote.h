/* The zygote of a domain: see twin.h.
 *
 *   none --zygote_begin--> loading --it sends Q, zygote_hold--> held --it dies--> none
 *
 * A held zygote is stopped inside the read of descriptor 3 where it idles. It has descriptors 0 to
 * 3 open and no others, and a page of ours in its memory (tables.h). Descriptor 3 is then the
 * bottom of the chute. A plain zygote is not held: it is asked to fork. */
#pragma once

#include "inside/stage/seccomp.h"
#include "inside/broker/source.h"
#include "inside/broker/twin.h"

/* The socket pair through which copies get their descriptors. All copies of a zygote, over any
 * number of generations, have the bottom end as descriptor 3. So there is one chute for as long as
 * the broker lives. */
struct chute {
    int top, bottom;
};
int chute_open(struct chute *ret, struct sg_error *e);
/* Call it after a copy has failed: takes back the descriptors that the copy may not have received,
 * so that no other copy gets them. */
void chute_clear(const struct chute *c);

struct zygote {
    struct source source;
    bool held;
    bool broken;                       /* held, but must not be copied any more */
    bool plain;                        /* awake: it forks itself when asked on `control` */
    int control;                       /* while loading: our end of its descriptor 3 */
    uint64_t deadline_ns;              /* for loading */
    pid_t ahead;                       /* held: a copy made ahead of need; 0: none */
    const struct seccomp_prog *filter; /* the filter of every copy */
};

#define ZYGOTE_NONE   \
    {                 \
        .control = -1 \
    }

/* fds: TWIN_ZYGOTE_FDS, then the doors; they stay the caller's. */
int zygote_begin(struct zygote *z, const struct chute *c, const struct twin_request *q,
                 const int *fds, struct sg_error *e);
/* Call it when the control socket is readable or the deadline is over. 1: the zygote is held; 0:
 * not yet; negative: why it cannot be. */
int zygote_hold(struct zygote *z, const struct seccomp_prog *filter, struct sg_error *e);
/* Kills the zygote. Its copies stay. */
void zygote_end(struct zygote *z);
/* Call it when the zygote has died by itself, and is reaped. */
void zygote_lost(struct zygote *z);
