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
 *                                 <- TWIN_KERNEL: pid inside, pidfds of K and H; or why not */
#pragma once

#include <stdint.h>

#include "base/err.h"

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
#define TWIN_DOORS_MAX 6 /* the first is that of the memory group */
#define TWIN_FDS_MAX   (TWIN_KERNEL_FDS + TWIN_DOORS_MAX)

enum twin_op { TWIN_ZYGOTE = 1, TWIN_BEGUN, TWIN_KERNEL };

struct twin_request {
    uint32_t magic, op;
    uint64_t seq;
    uint32_t n_doors;
    uint32_t plain;                 /* ZYGOTE: not by twins */
    uint32_t first_id;              /* ZYGOTE: of the sandbox whose files it sees, counted in F */
    uint32_t pids;                  /* KERNEL: as for every process inside (stage/confine.h) */
    uint64_t disk_bytes;            /* KERNEL */
    char imports[TWIN_IMPORTS_MAX]; /* ZYGOTE: what the interpreter loads; "": its default */
};

struct twin_reply {
    uint32_t magic, op;
    uint64_t seq; /* of the request; 0: a zygote that was ready has died */
    int32_t code; /* 0; descriptors: KERNEL two, BEGUN one */
    int32_t kind; /* enum sg_error_kind */
    int32_t pid;  /* of K, as seen inside */
    char message[256];
};

/* Role entry point of the agent program (src/agent/main.c). */
int broker_main(void);
