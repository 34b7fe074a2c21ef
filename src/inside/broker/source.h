/* What kernels are copied from: a process that stands still, and the state of the thread as which
 * the copy's K goes on. A zygote is one; so is each kernel of a set of frozen kernels (set of
 * frozen kernels.h).
 *
 * A copy is made by one call of the process, clone. The memory it is made in may be another's to
 * write: that of an H is its K's. So it is checked at the call's entry that it is the one that was
 * meant, made where it was meant; what is done after that is the kernel's. */
#pragma once

#include "inside/broker/cpu.h"
#include "inside/broker/remote_calls.h"

/* What the C library has registered with the kernel for the thread, and each copy must register
 * anew. */
struct source_thread {
    uint64_t rseq, robust, tid; /* addresses; 0: none */
    uint32_t rseq_len, rseq_signature;
    uint64_t robust_len;
};

struct source {
    pid_t pid;              /* 0: none */
    struct cpu_state state; /* inside a read of descriptor 3 */
    struct source_thread thread;
    bool registered;  /* the process itself has that registered */
    uint64_t call_at; /* a system-call instruction in its memory */
    uint64_t page;    /* the tables, tables_bytes() long; 0: not there yet */
    uint32_t n_doors;
    uint32_t umask;
    const struct remote_calls
        *remote_calls;      /* what K has to do beside what all have; NULL: nothing */
    size_t remote_calls_at; /* where among its calls: tables_install */
};

/* Of a stopped thread; the address for its id must be known from elsewhere. */
void source_learn_thread(pid_t pid, struct source_thread *ret);
/* Copies a process stopped in `state`, which has a system-call instruction at `call_at`. The copy
 * is our child, stopped before its first instruction. -ESRCH: the process did something else, and
 * was killed. */
int source_copy(pid_t pid, const struct cpu_state *state, uint64_t call_at, pid_t *ret,
                struct sg_error *e);
/* For the tables. Nobody else may have the memory, and there must be the instruction still. */
int source_map_page(struct source *s, struct sg_error *e);

/* When memory runs out sets of frozen kernels die before kernels, and kernels before the agent.
 * What one uses counts as well: the distance is such that a kernel which has taken up to half of
 * its sandbox's memory since it was copied is spared. */
#define OOM_KERNEL 500
#define OOM_FROZEN 1000
int source_be_victim(pid_t pid, int score, struct sg_error *e);
