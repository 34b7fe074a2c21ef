/* Kernels as copies of a warm interpreter: twins.
 *
 * A process's memory is independent of its ids, namespaces and descriptors: clone(CLONE_VM) gives
 * two processes one address space. A kernel is such a pair:
 *
 *   K   runs the untrusted code: in all namespaces of its sandbox, as its user, without
 *       capabilities, under the system-call filter. To everybody inside an ordinary process.
 *   H   holds K's memory from outside: in the domain's namespaces F and W, stopped by ptrace from
 *       birth to death. It never runs a line of K's code. A copy of H (fork) is a copy of K's
 *       memory in a process that was never inside K's sandbox, which is what a pid namespace asks
 *       of whoever is to enter another one.
 *
 * The zygote is an interpreter with its libraries loaded that has run no user's code; it has no K.
 * A kernel is made from it in these steps, none of which runs a line of the interpreter:
 *
 *   zygote (stopped) --fork--> H (stopped at birth) --table--> joins the sandbox's memory group,
 *                                                              enters its pid namespace for
 *                     clone(CLONE_VM) --> K (stopped at birth) --table--> enters all namespaces,
 *                                                              drops everything, filter last
 *   the broker reads what each call of the tables said; any doubt kills both
 *   K gets the zygote's registers, and goes on in the read of descriptor 3 that the zygote sat in
 *
 * A *table* is a list of system calls that a few instructions in a page of ours work off (cpu.h):
 * one stop for a list, not one a call.
 *
 * Where a host lets nobody trace, or for a processor that cpu.h does not know, there is the
 * **plain** way: the zygote stays awake and forks itself, and the child does to itself what the
 * tables would have done (kernels/python/_sandglass/plain.py). Such a kernel is as confined, and
 * has no H.
 *
 * The broker is a process of each domain: root of F and nothing outside, parent and tracer of the
 * zygote, of every H, and parent of every K. It is single-threaded, answers one request at a time,
 * and every wait has a deadline. When K ends it ends H; when the broker ends, the kernel ends every
 * H, and the Ks go on as plain processes.
 *
 *   warden                           broker
 *   TWIN_ZYGOTE + TWIN_ZYGOTE_FDS -> starts one; an old one is ended
 *                                 <- TWIN_BEGUN: its pidfd
 *                                 <- TWIN_ZYGOTE: it is ready, or why not. Also when it has died
 *   TWIN_KERNEL + TWIN_KERNEL_FDS ->
 *                                 <- TWIN_KERNEL: pid inside, pidfds of K and H; or why not
 *
 * Live fork. A kernel that ran can be copied as the zygote is, but its memory is K's to write, and
 * what K has open belongs to a sandbox whose files are about to be frozen (docs/internals/fork.md):
 *
 *   TWIN_HOLD + TWIN_HOLD_FDS ->     stops all that runs in the sandbox, looks at it, and copies
 * the H of each kernel that is named: a *set of frozen kernels*, stopped at birth
 *                                 <- TWIN_STILL, with TWIN_TELL: it stands still, nothing is in the
 *                                    way, and copying begins. It stands still also if that fails.
 *                                    The second of TWIN_HELD_FDS
 *                                 <- TWIN_HOLD: the report, and a pidfd of each copy; `kernels`, in
 *                                    the same order. With -EBUSY something is in the way and all
 *                                    runs on. Else the sandbox stands still until
 *   TWIN_GO ->                       with TWIN_MOVED: the sandbox has a new root by now. Working
 *                                    directories and open files of all that was stopped are taken
 *                                    there; it goes on
 *                                 <- TWIN_GO. -EBUSY: somebody could not be taken along, and still
 *                                    has what it had; -ETIMEDOUT: it had gone on by itself
 *   TWIN_KERNEL with `set of frozen kernels`, `was`  as from the zygote, with K's registers,
 * directory and open files TWIN_DROP ->                     ends a set of frozen kernels; not
 * answered
 *                                 <- TWIN_LOST, seq 0: one has ended (its memory was needed)
 *
 *   TWIN_BEAT ->                  <- TWIN_BEAT: it is alive (warden/processes/heartbeat.h)
 *
 * What is not told to go on in TWIN_HELD_MS goes on by itself, and its set of frozen kernels ends.
 * A call is made in H, in memory that K's threads could write: it is checked at the call's entry
 * that it is the clone that was meant, or H dies, and K can no longer be copied. In a set of frozen
 * kernels nobody else runs, so what is checked there stays true. Any doubt ends the copy, never
 * what it is copied from.
 *
 * The report is JSON, for the front: {"kernels": [{"pid", "files": [{"fd", "path", "offset"}],
 * "dropped": [{"fd", "what"}]}], "inTheWay": [{"pid", "command", "what", "holds", "remedy"}],
 * "more": how many entries were left out}. Pids are those inside; `what` is one of "cell" (it runs
 * one), "thread", "process", "file", "mapping", "lock", "exec", "memory", "restless". */
#pragma once

#include <stdint.h>

#include "lib/base/err.h"

#define TWIN_MAGIC       0x73677431u /* "sgt1" */
#define TWIN_IMPORTS_MAX 1024

/* Descriptors beside a request, in this order; then the group doors. */
enum { TWIN_Z_MNT, TWIN_Z_NET, TWIN_Z_IPC, TWIN_Z_UTS, TWIN_ZYGOTE_FDS };
enum {
    TWIN_K_USER,
    TWIN_K_MNT,
    TWIN_K_PID,
    TWIN_K_NET,
    TWIN_K_IPC,
    TWIN_K_UTS,
    TWIN_K_CGROUP,
    TWIN_K_CONTROL, /* its descriptor 3 */
    TWIN_K_STDOUT,
    TWIN_K_STDERR,
    TWIN_KERNEL_FDS
};
enum {
    TWIN_H_MEMBERS, /* cgroup.procs of the sandbox's group, to be read */
    TWIN_H_ROOT,    /* its root directory, as it was before TWIN_MOVED */
    TWIN_HOLD_FDS   /* then, with TWIN_KEEP, the door of a memory group that sets of frozen kernels
                       are to be in */
};
#define TWIN_DOORS_MAX 6 /* the first is that of the memory group */
#define TWIN_FDS_MAX   (TWIN_KERNEL_FDS + TWIN_DOORS_MAX)

enum twin_op {
    TWIN_ZYGOTE = 1,
    TWIN_BEGUN,
    TWIN_KERNEL,
    TWIN_HOLD,
    TWIN_GO,
    TWIN_DROP,
    TWIN_LOST,
    TWIN_STILL,
    TWIN_BEAT
};

/* flags */
#define TWIN_LAST \
    1u /* KERNEL: the set of frozen kernels itself becomes the kernel's H; it is none any more */
#define TWIN_MOVED 2u /* GO */
#define TWIN_KEEP  4u /* HOLD */
#define TWIN_TELL  8u /* HOLD: answered by TWIN_STILL first */

/* Descriptors that come with a HOLD's reply before those of the kernels: the report, and a memfd
 * with the paths, each with its NUL, of files of the sandbox's that its kernels may write to. */
#define TWIN_HELD_FDS 2

#define TWIN_KERNELS_MAX 64
#define TWIN_HELD_MS     5000
#define TWIN_REPORT_MAX  (256u * 1024)

struct twin_request {
    uint32_t magic, op;
    uint64_t seq;
    uint32_t n_doors;
    uint32_t plain;      /* ZYGOTE: not by twins */
    uint32_t first_id;   /* ZYGOTE: of the sandbox whose files it sees, counted in F */
    uint32_t cpus;       /* ZYGOTE: how many threads its libraries are to have when they have any */
    uint32_t pids;       /* KERNEL: as for every process inside (stage/confine.h) */
    uint64_t disk_bytes; /* KERNEL */
    uint64_t owner;      /* KERNEL, HOLD, GO: the sandbox, as the provider counts them */
    uint64_t frozen_kernels; /* HOLD: what to call what it makes; KERNEL: 0, or from which; DROP */
    int32_t
        was; /* KERNEL with a set of frozen kernels: the kernel of it, as it was called inside */
    uint32_t flags;
    uint32_t n_kernels; /* HOLD: of the sandbox, by their pids inside */
    int32_t kernels[TWIN_KERNELS_MAX];
    char imports[TWIN_IMPORTS_MAX]; /* ZYGOTE: what the interpreter loads; "": its default */
};

struct twin_reply {
    uint32_t magic, op;
    uint64_t seq; /* of the request; 0: a zygote that was ready has died */
    int32_t code; /* 0; descriptors: KERNEL two, BEGUN one; HOLD, also with -EBUSY: a memfd, the
                   * report, then a pidfd for each of `kernels` */
    int32_t kind; /* enum sg_error_kind */
    int32_t pid;  /* of K, as seen inside */
    uint64_t frozen_kernels; /* HOLD, LOST */
    uint32_t kept;           /* HOLD: as asked for */
    uint32_t n_kernels;      /* HOLD: that it has */
    int32_t kernels[TWIN_KERNELS_MAX];
    uint64_t memory_bytes; /* HOLD: of its kernels, at first shared with what they are copies of */
    uint32_t held_usec;    /* GO: how long it stood still */
    char message[256];
};

/* Role entry point of the agent program (src/inside/agent/main.c). */
int broker_main(void);
