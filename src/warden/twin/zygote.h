/* The zygote of a domain: see twin.h.
 *
 *   none --zygote_begin--> loading --its word Q, zygote_hold--> held --> (it dies) none
 *
 * Held: stopped inside the read of descriptor 3 that it idles in, with nothing open but 0 to 3, and
 * with a page of ours in its memory (tables.h). Descriptor 3 is then a socket of the broker's, over
 * which each copy gets its descriptors. A plain one is not held but asked. */
#pragma once

#include "warden/stage/seccomp.h"
#include "warden/twin/cpu.h"
#include "warden/twin/twin.h"

/* What the C library has registered with the kernel for the thread, and each copy must register
 * anew. */
struct zygote_thread {
    uint64_t rseq, robust, tid; /* addresses; 0: none */
    uint32_t rseq_len, rseq_signature;
    uint64_t robust_len;
};

struct zygote {
    pid_t pid; /* 0: none */
    bool held;
    bool broken;          /* held, and not to be used again */
    bool plain;           /* awake: it forks itself when it is asked on `control` */
    int control;          /* loading: its descriptor 3 */
    int fds;              /* held: where copies get their descriptors from */
    int seen_fds;         /* the other end of it */
    uint64_t deadline_ns; /* loading */
    pid_t ahead;          /* held: a copy that waits to be used; 0: none */
    uint32_t n_doors;
    const struct seccomp_prog *filter; /* of every copy */
    struct cpu_state state;
    struct zygote_thread thread;
    uint64_t call_at; /* a system-call instruction in its memory */
    uint64_t page;    /* the tables */
};

#define ZYGOTE_NONE                              \
    {                                            \
        .control = -1, .fds = -1, .seen_fds = -1 \
    }

/* fds as TWIN_ZYGOTE_FDS, then doors; they stay the caller's. */
int zygote_begin(struct zygote *z, const struct twin_request *q, const int *fds,
                 struct sg_error *e);
/* The control socket is readable, or the deadline is over: 1 held, 0 not yet, or why not. */
int zygote_hold(struct zygote *z, const struct seccomp_prog *filter, struct sg_error *e);
/* A copy has failed: takes back what it may not have received, so that no other gets it. */
void zygote_take_back(struct zygote *z);
/* Kills it. Its copies stay. */
void zygote_end(struct zygote *z);
/* It has died by itself, and is reaped. */
void zygote_lost(struct zygote *z);
