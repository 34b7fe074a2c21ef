/* A source: a process that stands still and that kernels are copied from, with the state of the
 * thread as which the copy's K goes on. The zygote is a source, and so is each frozen kernel
 * (frozen_kernels.h).
 *
 * A copy is made by one system call of the process, clone. Others may be able to write the
 * process's memory: an H shares its memory with its K. So the broker checks at the call's entry
 * that it is the clone it wanted, made at the instruction it chose. From there on only Linux
 * acts. */
#pragma once

#include "inside/broker/cpu.h"
#include "inside/broker/remote_calls.h"

/* The C library registers these with the kernel for each thread. Each copy must register it
 * anew. */
struct source_thread {
    uint64_t rseq, robust, tid; /* addresses; 0: none */
    uint32_t rseq_len, rseq_signature;
    uint64_t robust_len;
};

struct source {
    pid_t pid;              /* 0: none */
    struct cpu_state state; /* inside a read of descriptor 3, unless it starts */
    struct source_thread thread;
    bool registered;  /* the process itself has these registered */
    uint64_t call_at; /* a system-call instruction in its memory */
    uint64_t page;    /* where the tables are, tables_bytes() long; 0: not installed yet */
    uint32_t n_doors;
    uint32_t umask;
    bool starts; /* `state` is at a program's first instruction, over which a call was lent */
    long lent;   /* what was there */
    const struct remote_calls
        *remote_calls;      /* calls that only copies of this source make in K; NULL: none */
    size_t remote_calls_at; /* their index in K's table: set by tables_install */
};

/* Learns this from a stopped thread. `tid`, the address for the thread's id, must come from
 * elsewhere. */
void source_learn_thread(pid_t pid, struct source_thread *ret);
/* Where Linux writes that thread's id when it ends: what set_tid_address was told. Somebody may have
 * the thread's memory, so the address may be any. The thread must be stopped in `state` and have a
 * system-call instruction at `call_at`; its registers are as before. */
int source_learn_tid(pid_t pid, const struct cpu_state *state, uint64_t call_at, uint64_t *ret,
                     struct sg_error *e);
/* Copies a process that is stopped in `state` and has a system-call instruction at `call_at`. The
 * copy is our child, stopped before its first instruction. -ESRCH: the process did something else,
 * and was killed. */
int source_copy(pid_t pid, const struct cpu_state *state, uint64_t call_at, pid_t *ret,
                struct sg_error *e);
/* Maps the page for the tables. Nobody else may have the memory, and the system-call instruction
 * must still be there. */
int source_map_page(struct source *s, struct sg_error *e);

/* When memory runs out, frozen kernels die before kernels, and kernels before the agent. Linux's
 * choice also counts the memory that a process uses. The distance between the two scores is such
 * that a kernel which has taken up to half of its sandbox's memory since it was copied is
 * spared. */
#define OOM_KERNEL 500
#define OOM_FROZEN 1000
int source_be_victim(pid_t pid, int score, struct sg_error *e);
