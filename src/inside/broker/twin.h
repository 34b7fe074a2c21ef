/* Kernels as copies of a warm interpreter: twins.
 *
 * A process's memory is independent of its ids, namespaces and descriptors: clone(CLONE_VM) gives
 * two processes one address space. A kernel is such a pair:
 *
 *   K   runs the untrusted code: in all namespaces of its sandbox, as its user, without
 *       capabilities, under the system-call filter. To everybody inside it is an ordinary process.
 *   H   holds K's memory from outside: in the domain's namespaces F and W, stopped by ptrace from
 *       its creation to its end. It never runs a line of K's code. A copy of H (fork) is a
 *       copy of K's memory in a process that was never inside K's sandbox. Only such a process
 *       can enter the pid namespace of another sandbox.
 *
 * The zygote is an interpreter with its libraries loaded that has run no user's code; it has no K.
 * A kernel is made from it in these steps, none of which runs a line of the interpreter:
 *
 *   1. The zygote, stopped, is forked: the child is H, stopped before its first instruction.
 *   2. H works through its table: it joins the sandbox's memory group, enters the sandbox's pid
 *      namespace for its children, and makes K with clone(CLONE_VM). K is stopped before its first
 *      instruction.
 *   3. K works through its table: it enters all namespaces, drops all rights, and loads the filter
 *      last.
 *   4. The broker reads what each call of the tables returned. Any doubt kills both.
 *   5. K gets the zygote's registers, and goes on in the read of descriptor 3 that the zygote was
 *      stopped in.
 *
 * A *table* is a list of system calls. A few instructions in a page of ours work through it
 * (cpu.h): one stop for the whole list, not one for each call.
 *
 * A kernel can also be **fresh**, no copy of anything: H executes the interpreter and is stopped
 * before the first instruction, and K is made in the same way and runs it. So the interpreter of a
 * template is started, whose files nobody vouches for: it never has a right that a program inside
 * does not have. When it idles it is copied as any kernel is that ran (live fork, below), and the
 * frozen kernel is the zygote of all sandboxes with these files.
 *
 * If the host lets nobody trace, or cpu.h does not know the processor, kernels are made the
 * **plain** way: the zygote stays awake and forks itself, and the child does to itself what the
 * tables would have done (kernels/python/_sandglass/plain.py). Such a kernel is confined as well,
 * and has no H.
 *
 * Each domain has one broker. It is root of F and nothing outside. It is the parent and tracer of
 * the zygote and of every H, and the parent of every K. It has one thread, answers one request at a
 * time, and every wait has a deadline. When K ends, the broker ends H. When the broker ends, Linux
 * ends every H, and the Ks go on as ordinary processes.
 *
 *   warden                            broker
 *   TWIN_ZYGOTE + TWIN_ZYGOTE_FDS ->  starts a zygote, and ends the old one
 *                                 <-  TWIN_BEGUN: the zygote's pidfd
 *                                 <-  TWIN_ZYGOTE: the zygote is ready, or why not. Also sent when
 *                                     a ready zygote has died
 *   TWIN_KERNEL + TWIN_KERNEL_FDS ->  makes a kernel
 *                                 <-  TWIN_KERNEL: its pid inside, pidfds of K and H; or why not
 *   TWIN_BEAT                     ->
 *                                 <-  TWIN_BEAT: the broker is alive (warden/processes/heartbeat.h)
 *
 * Live fork. A kernel that ran can be copied as the zygote is, but K can write its memory, and K's
 * open files belong to a sandbox whose files are about to be frozen (docs/internals/fork.md):
 *
 *   warden                            broker
 *   TWIN_HOLD + TWIN_HOLD_FDS     ->  stops all that runs in the sandbox, looks at it, and copies
 *                                     the H of each kernel that the request names. The copies are a
 *                                     *set of frozen kernels*, stopped before their first
 *                                     instruction
 *                                 <-  TWIN_STILL, only with TWIN_TELL: the sandbox stands still,
 *                                     nothing is in the way, and copying begins. The sandbox stays
 *                                     still even if copying fails. Brings the second of
 *                                     TWIN_HELD_FDS
 *                                 <-  TWIN_HOLD: the report, and a pidfd of each copy; `kernels` is
 *                                     in the same order. -EBUSY: something is in the way, and all
 *                                     go on. Otherwise the sandbox stands still until TWIN_GO
 *   TWIN_GO                       ->  lets the sandbox go on. With TWIN_MOVED it has a new root by
 *                                     now: the broker first takes the working directories and open
 *                                     files of all that was stopped there
 *                                 <-  TWIN_GO. -EBUSY: a process could not be taken along, and
 *                                     keeps its old files; -ETIMEDOUT: the sandbox had gone on by
 *                                     itself
 *   TWIN_KERNEL with              ->  makes a kernel as from the zygote, but with K's registers,
 *     `frozen_kernels` and `was`      directory and open files
 *   TWIN_DROP                     ->  ends a set of frozen kernels; not answered
 *                                 <-  TWIN_LOST, seq 0: a set has ended (its memory was needed)
 *
 * A sandbox that gets no TWIN_GO within TWIN_HELD_MS goes on by itself, and its set of frozen
 * kernels ends.
 *
 * H is copied by a call made in H, in memory that K's threads could write. So the broker checks at
 * the call's entry that it is the clone that was meant. If it is not, H dies, and K can no longer
 * be copied. In a frozen kernel nobody else runs, so what is checked there stays true. Any doubt
 * ends the copy, never what it is copied from.
 *
 * The report is JSON, for the front: {"kernels": [{"pid", "files": [{"fd", "path", "offset"}],
 * "dropped": [{"fd", "what"}]}], "inTheWay": [{"pid", "command", "what", "holds", "remedy"}],
 * "more": how many entries were left out}. Pids are those inside. `what` in "inTheWay" is one of
 * "cell" (a cell is running), "thread", "process", "file", "mapping", "lock", "exec", "memory",
 * "restless". */
#pragma once

#include <stdint.h>

#include "lib/base/err.h"

#define TWIN_MAGIC       0x73677431u /* "sgt1" */
#define TWIN_IMPORTS_MAX 1024

/* The descriptors beside a request, in this order. After them come the doors: descriptors of
 * control groups, one for each group to join. */
enum { TWIN_Z_MNT, TWIN_Z_NET, TWIN_Z_IPC, TWIN_Z_UTS, TWIN_ZYGOTE_FDS };
enum {
    TWIN_K_USER,
    TWIN_K_MNT,
    TWIN_K_PID,
    TWIN_K_NET,
    TWIN_K_IPC,
    TWIN_K_UTS,
    TWIN_K_CGROUP,
    TWIN_K_CONTROL, /* the kernel's descriptor 3 */
    TWIN_K_STDOUT,
    TWIN_K_STDERR,
    TWIN_KERNEL_FDS
};
enum {
    TWIN_H_MEMBERS, /* cgroup.procs of the sandbox's group, for reading */
    TWIN_H_ROOT,    /* the sandbox's root directory, as it was before TWIN_MOVED */
    TWIN_HOLD_FDS   /* with TWIN_KEEP one more follows: the door of the memory group that the frozen
                     * kernels join */
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

/* Values of `flags`. The comment names the request that each belongs to. */
#define TWIN_LAST \
    1u /* KERNEL: the frozen kernel itself becomes the new kernel's H, and leaves its set */
#define TWIN_MOVED 2u /* GO: the sandbox has a new root */
#define TWIN_KEEP  4u /* HOLD: a door comes with the request */
#define TWIN_TELL  8u /* HOLD: send TWIN_STILL first */
#define TWIN_FRESH \
    16u /* KERNEL: no copy, the interpreter starts in it. `first_id`, `cpus` and `imports` are as for
         * a zygote */

/* The descriptors in the reply to a HOLD, before those of the kernels: the report, and a memfd with
 * the paths of the sandbox's files that its kernels may write to, each ending in NUL. */
#define TWIN_HELD_FDS 2

#define TWIN_KERNELS_MAX 64
#define TWIN_HELD_MS     5000
#define TWIN_WRITTEN_MAX (4u << 20) /* bytes of paths */
#define TWIN_REPORT_MAX  (256u * 1024)

struct twin_request {
    uint32_t magic, op;
    uint64_t seq;
    uint32_t n_doors;
    uint32_t plain;      /* ZYGOTE: make kernels the plain way */
    uint32_t first_id;   /* ZYGOTE: first id, in F, of the sandbox whose files the zygote sees */
    uint32_t cpus;       /* ZYGOTE: how many threads its libraries may start */
    uint32_t pids;       /* KERNEL: limit of processes, as for every process inside
                          * (stage/confine.h) */
    uint64_t disk_bytes; /* KERNEL: limit of a file's size */
    uint64_t owner;      /* KERNEL, HOLD, GO: the sandbox's number, given by the provider */
    uint64_t frozen_kernels; /* the set's number. HOLD, DROP: of the set to make or end; KERNEL: of
                              * the set to copy from, or 0 */
    int32_t was; /* KERNEL from a set of frozen kernels: which one, by the pid that K had inside */
    uint32_t flags;
    uint32_t n_kernels; /* HOLD: how many `kernels` of the sandbox to copy, by their pids inside */
    int32_t kernels[TWIN_KERNELS_MAX];
    char imports[TWIN_IMPORTS_MAX]; /* ZYGOTE: modules to load; "": the default */
};

struct twin_reply {
    uint32_t magic, op;
    uint64_t seq; /* of the request; 0: a zygote that was ready has died */
    int32_t code; /* 0 or -errno. Descriptors: KERNEL two, BEGUN one; HOLD: TWIN_HELD_FDS, then a
                   * pidfd for each of `kernels`, or with -EBUSY the report alone */
    int32_t kind; /* enum sg_error_kind */
    int32_t pid;  /* K's pid inside */
    uint64_t frozen_kernels; /* HOLD, LOST */
    uint32_t kept;           /* HOLD: not 0 if the request had TWIN_KEEP */
    uint32_t n_kernels;      /* HOLD: how many kernels the set has */
    int32_t kernels[TWIN_KERNELS_MAX];
    uint64_t memory_bytes; /* HOLD: memory of the frozen kernels; at first they share it with the
                            * kernels that they copy */
    uint32_t held_usec;    /* GO: how long the sandbox stood still */
    char message[256];
};

/* Role entry point of the agent program (src/inside/agent/main.c). */
int broker_main(void);
