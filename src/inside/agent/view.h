/* What programs see of the sandbox's limits and use: the files of /proc and /sys that would
 * otherwise show the host's figures.
 *
 * The files are on a small tmpfs of the sandbox, mounted read-only; the stage (stage/view.h) binds
 * them to their places. They are empty while nobody reads them, and cost no page. The agent holds a
 * *write lease* on each (fcntl F_SETLEASE): an open from inside waits, Linux tells the agent, the
 * agent writes the figures of that moment and gives the lease up, and the open goes on.
 *
 *             an open waits: SIGIO           nobody has it open: the lease is granted again
 *   leased ------------------------> shown ------------------------------------------> leased
 *   (empty)   written, lease given up  │  ^                                            (empty)
 *                                      └──┘ still open: written again, once a second
 *
 * So reads are exact, an idle sandbox is never woken, and a paused one can be paused: the open that
 * waits is interruptible, unlike a read of a FUSE file. If the agent does not answer, the open goes
 * on after fs.lease-break-time (45 s), without figures. An open with O_NONBLOCK fails with EAGAIN,
 * and works when it is tried again.
 *
 * Under cgroup v2 the rest is a real mount of the sandbox's own group; under v1 there are real
 * mounts of its v1 groups, and beside them v2's names: links to their files. */
#pragma once

#include <stdint.h>

#include "lib/loop/loop.h"
#include "lib/text/strbuf.h"

struct agent_config;

enum view_file {
    VIEW_MEMINFO,
    VIEW_STAT,
    VIEW_LOADAVG,
    VIEW_CPUINFO,
    VIEW_CPUS,
    VIEW_CPU_MAX, /* with cgroup v1 only */
    VIEW_FILES_MAX_
};
extern const char *const view_names[VIEW_FILES_MAX_];

/* Where the agent writes to and reads from; -1: not there. */
struct view_fds {
    int file[VIEW_FILES_MAX_];
    int cpuinfo; /* the host's /proc/cpuinfo, by O_PATH */
    bool v1;
    const char *groups; /* where the sandbox's groups are mounted; nobody inside can change that */
};
#define VIEW_NONE                                                                   \
    {                                                                               \
        .file = {-1, -1, -1, -1, -1, -1}, .cpuinfo = -1, .groups = "/sys/fs/cgroup" \
    }

/* The text of a file of the sandbox's group; under v1 the name has the controller in front. Returns
 * buf, which is empty if there is no such file. */
#define VIEW_GROUP_MAX 8192 /* memory.stat of v2 has about 2,000 bytes */
const char *view_read_group(const struct view_fds *of, const char *name, char buf[VIEW_GROUP_MAX]);

struct view {
    struct loop *loop;
    const struct agent_config *config;
    struct loop_source signals;
    struct loop_timer again; /* tries to get the leases back */
    uint64_t delay_ns;
    bool leased[VIEW_FILES_MAX_];
    uint64_t written_ns[VIEW_FILES_MAX_];
    uint64_t made_ns;
    struct {
        double load[3];
        uint64_t at_ns, used_usec;
    } past; /* when the load was last asked for */
};

/* Takes the leases, if there are files (config->view). Call it as the agent, with all signals
 * blocked. 0 or -errno. */
int view_init(struct view *v, struct loop *loop, const struct agent_config *config);
void view_done(struct view *v);
/* Answers opens that wait. The agent calls it when its own open, with O_NONBLOCK, was told EAGAIN:
 * that may be a file of its own view. */
void view_yield(void);

/* ---- view_text.c: what is in the files ------------------------------------------------------- */

struct view_figures {
    uint64_t memory_max, memory_used;
    uint64_t quota_usec, period_usec; /* of processor time */
    /* Of memory.stat; v1 and v2 have other names for some. */
    uint64_t cache, anon, shmem, mapped, dirty, writeback, slab_reclaimable, slab_unreclaimable;
    uint64_t kernel_stack, pagetables;
    uint64_t inactive_anon, active_anon, inactive_file, active_file, unevictable;
    uint64_t user_usec, system_usec;
    uint64_t processes;
    uint64_t age_usec; /* since the sandbox was made */
    uint64_t boot; /* when the machine was started, in seconds: what starts of processes refer to */
    double load[3];
    uint32_t cpus;
};

/* Fill in the figures from files of a group. Keys that are not there are 0. */
void view_read_memory(struct view_figures *f, const char *memory_stat);
void view_read_cpu(struct view_figures *f, const char *cpu_stat);
/* Averages of the processors in use over 1, 5 and 15 minutes: `busy` in use for `usec`. */
void view_load(double load[3], double busy, uint64_t usec);

/* Appends the text of a file. host_cpuinfo: for VIEW_CPUINFO. */
void view_text(enum view_file which, const struct view_figures *f, const char *host_cpuinfo,
               struct strbuf *out);
