/* Shows the files of the view while somebody reads them. See view.h. */
#include "inside/agent/view.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/sysinfo.h>
#include <time.h>

#include "inside/agent/agent.h"
#include "inside/stage/confine.h"
#include "lib/base/clock.h"
#include "lib/base/fd.h"

#define TEXT_MAX     (1u << 20) /* the size of the tmpfs */
#define PATH_LEN     128
#define CPUINFO_MAX  (8u << 20)
#define DELAY_MIN_NS 1000000ull    /* most readers are done by then */
#define DELAY_MAX_NS 1000000000ull /* so often a file is written that stays open */

static struct view *only; /* for view_yield */

/* ---- figures --------------------------------------------------------------------------------- */

const char *view_read_group(const struct view_fds *of, const char *name, char buf[VIEW_GROUP_MAX])
{
    AUTO(close_p) int fd = -1;
    char path[PATH_LEN];
    ssize_t n;

    snprintf(path, sizeof(path), "%s/%s", of->groups, name);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    n = fd < 0 ? 0 : read(fd, buf, VIEW_GROUP_MAX - 1);

    buf[n > 0 ? n : 0] = '\0';
    return buf;
}

static uint64_t read_number(const struct view *v, const char *name)
{
    char buf[VIEW_GROUP_MAX];

    return strtoull(view_read_group(v->config->view, name, buf), NULL, 10);
}

static void look_at_memory(const struct view *v, struct view_figures *f)
{
    bool v1 = v->config->view->v1;
    uint64_t limit = read_number(v, v1 ? "memory/memory.limit_in_bytes" : "memory.max");
    char buf[VIEW_GROUP_MAX];
    struct sysinfo host = {.mem_unit = 1};

    sysinfo(&host);
    f->memory_max = (uint64_t)host.totalram * host.mem_unit;
    if (limit > 0 && limit < f->memory_max)
        f->memory_max = limit;
    f->memory_used = read_number(v, v1 ? "memory/memory.usage_in_bytes" : "memory.current");
    view_read_memory(
        f, view_read_group(v->config->view, v1 ? "memory/memory.stat" : "memory.stat", buf));
}

static uint64_t usec_of(const struct timeval *t)
{
    return (uint64_t)t->tv_sec * 1000000 + (uint64_t)t->tv_usec;
}

/* Where no group counts it (one-shots under v1): what has ended so far. */
static void look_at_children(struct view_figures *f)
{
    struct rusage u;

    if (getrusage(RUSAGE_CHILDREN, &u) < 0)
        return;
    f->user_usec = usec_of(&u.ru_utime);
    f->system_usec = usec_of(&u.ru_stime);
}

static void look_at_cpu(const struct view *v, struct view_figures *f)
{
    char buf[VIEW_GROUP_MAX];

    if (v->config->view->v1) {
        f->user_usec = read_number(v, "cpuacct/cpuacct.usage_user") / 1000;
        f->system_usec = read_number(v, "cpuacct/cpuacct.usage_sys") / 1000;
    } else {
        view_read_cpu(f, view_read_group(v->config->view, "cpu.stat", buf));
    }
    if (f->user_usec + f->system_usec == 0)
        look_at_children(f);
}

/* The load since it was last asked for is taken to have been even. */
static void look_at_load(struct view *v, struct view_figures *f)
{
    uint64_t now = clock_ns(), used = f->user_usec + f->system_usec;
    uint64_t usec = (now - v->past.at_ns) / 1000;

    if (usec > 0 && used >= v->past.used_usec)
        view_load(v->past.load, (double)(used - v->past.used_usec) / (double)usec, usec);
    v->past.at_ns = now;
    v->past.used_usec = used;
    memcpy(f->load, v->past.load, sizeof(f->load));
}

static uint64_t boot_time(void)
{
    struct timespec t;

    clock_gettime(CLOCK_REALTIME, &t);
    return ((uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec - clock_ns()) / 1000000000;
}

static struct view_figures look(struct view *v, enum view_file which)
{
    bool v1 = v->config->view->v1;
    struct view_figures f = {.cpus = v->config->cpus > 0 ? v->config->cpus : 1};

    switch (which) {
    case VIEW_MEMINFO:
        look_at_memory(v, &f);
        break;
    case VIEW_STAT:
    case VIEW_LOADAVG:
        f.processes = read_number(v, v1 ? "pids/pids.current" : "pids.current");
        f.age_usec = (clock_ns() - v->made_ns) / 1000;
        f.boot = boot_time();
        look_at_cpu(v, &f);
        look_at_load(v, &f);
        break;
    case VIEW_CPU_MAX:
        f.quota_usec = read_number(v, "cpu/cpu.cfs_quota_us");
        f.period_usec = read_number(v, "cpu/cpu.cfs_period_us");
        break;
    case VIEW_CPUINFO:
    case VIEW_CPUS:
    case VIEW_FILES_MAX_:
        break;
    }
    return f;
}

/* ---- files ----------------------------------------------------------------------------------- */

/* If memory is full, the file is shorter: there is nobody to tell. */
static int put(struct view *v, enum view_file which)
{
    AUTO(strbuf_done) struct strbuf out = strbuf_upto(TEXT_MAX);
    AUTO(free_p) char *cpuinfo = NULL;
    const struct view_figures f = look(v, which);
    int fd = v->config->view->file[which];
    char path[32];

    if (which == VIEW_CPUINFO) {
        snprintf(path, sizeof(path), "/proc/self/fd/%d", v->config->view->cpuinfo);
        file_read(AT_FDCWD, path, CPUINFO_MAX, &cpuinfo, NULL);
    }
    view_text(which, &f, cpuinfo ? cpuinfo : "", &out);
    v->written_ns[which] = clock_ns();
    ssize_t n = pwrite(fd, out.buf, out.len, 0);
    return ftruncate(fd, n > 0 ? n : 0);
}

static void try_again(struct view *v, uint64_t delay_ns)
{
    v->delay_ns = delay_ns;
    loop_timer_set(v->loop, &v->again, clock_ns() + delay_ns);
}

/* Writes the files that somebody waits for, and lets them in. */
static void answer(struct view *v)
{
    for (int i = 0; i < VIEW_FILES_MAX_; i++) {
        int fd = v->config->view->file[i];
        if (!v->leased[i] || fcntl(fd, F_GETLEASE) == F_WRLCK)
            continue;
        put(v, i);
        fcntl(fd, F_SETLEASE, F_UNLCK);
        v->leased[i] = false;
        try_again(v, DELAY_MIN_NS);
    }
}

static void on_signal(struct loop_source *src, uint32_t events UNUSED)
{
    struct signalfd_siginfo info;

    while (read(src->fd, &info, sizeof(info)) == (ssize_t)sizeof(info))
        ;
    answer(CONTAINER_OF(src, struct view, signals));
}

/* Returns whether the file must be looked at again. */
static bool take_lease(struct view *v, enum view_file which)
{
    int fd = v->config->view->file[which];

    if (fd < 0 || v->leased[which])
        return false;
    if (fcntl(fd, F_SETLEASE, F_WRLCK) == 0) {
        v->leased[which] = true;
        /* Nobody has it open; whoever opens it now waits. Each sandbox's start comes here with files
         * that are still empty. */
        return v->written_ns[which] > 0 && ftruncate(fd, 0) < 0;
    }
    if (errno == EINVAL) { /* leases are turned off (fs.leases-enable): it keeps what it has */
        put(v, which);
        return false;
    }
    if (clock_ns() - v->written_ns[which] >= DELAY_MAX_NS)
        put(v, which);
    return true;
}

static void on_again(struct loop_timer *timer)
{
    struct view *v = CONTAINER_OF(timer, struct view, again);
    uint64_t next = 2 * v->delay_ns < DELAY_MAX_NS ? 2 * v->delay_ns : DELAY_MAX_NS;
    bool more = false;

    for (int i = 0; i < VIEW_FILES_MAX_; i++)
        more |= take_lease(v, i);
    if (more)
        try_again(v, next);
}

int view_init(struct view *v, struct loop *loop, const struct agent_config *config)
{
    sigset_t io;
    int fd;

    *v = (struct view){.loop = loop,
                       .config = config,
                       .signals = {.fd = -1, .fn = on_signal},
                       .again.fn = on_again,
                       .delay_ns = DELAY_MIN_NS,
                       .made_ns = clock_ns()};
    v->past.at_ns = v->made_ns;
    if (!config->view)
        return 0;
    sigemptyset(&io);
    sigaddset(&io, SIGIO);
    fd = signalfd(-1, &io, SFD_CLOEXEC | SFD_NONBLOCK);
    if (fd < 0)
        return -errno;
    loop_watch(loop, &v->signals, fd, EPOLLIN);
    only = v;
    for (int i = 0; i < VIEW_FILES_MAX_; i++)
        take_lease(v, i);
    return 0;
}

void view_done(struct view *v)
{
    int fd = v->signals.fd;

    if (!v->config || !v->config->view)
        return;
    only = NULL;
    loop_timer_cancel(v->loop, &v->again);
    loop_unwatch(v->loop, &v->signals);
    close_p(&fd);
}

void view_yield(void)
{
    const struct agent_user *as = confine_fs_who();

    if (!only)
        return;
    /* Only the owner of a file may give up its lease. */
    if (as)
        confine_fs_end();
    answer(only);
    if (as && confine_fs_begin(as) < 0)
        abort();
}
