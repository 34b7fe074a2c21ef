/* v1 hierarchies. A sandbox has a directory of its own in each but `devices`, where all share one.
 * A hierarchy for processor time is used only when asked for; often it is the same as `cpu`. */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>

#include "lib/base/fd.h"
#include "warden/host/cgroup.h"

enum { MEMORY, PIDS, CPU, FREEZER, CPUACCT, N_OWN, DEVICES = N_OWN, N_CONTROLLERS };

static const char *const controllers[N_CONTROLLERS] = {"memory",  "pids",    "cpu",
                                                       "freezer", "cpuacct", "devices"};

/* null, zero, full, random, urandom, tty, ptmx, and the terminals of devpts */
static const char *const devices_allowed[] = {"c 1:3 rw", "c 1:5 rw", "c 1:7 rw", "c 1:8 rw",
                                              "c 1:9 rw", "c 5:0 rw", "c 5:2 rw", "c 136:* rw"};

#define NEAR_BYTES (1u << 20) /* this near is at the limit: pages are charged in batches */

#define SHARES 1024 /* the kernel's default; it caps values that are too large */

/* <mount>/sandglass of each controller; opened once per process, never closed. CPUACCT's is -1 if
 * there is none, or if it is the same as CPU's. */
static int parents[N_CONTROLLERS];
static bool parents_open;

/* Whether processor time has a hierarchy of its own. */
static bool has_cpuacct(void)
{
    struct cgroup_mount m, cpu;

    return cgroup_find_mount(controllers[CPUACCT], &m) == 0 &&
           !(cgroup_find_mount(controllers[CPU], &cpu) == 0 && strcmp(m.path, cpu.path) == 0);
}

/* Kernels before 5.11 add up the memory of subgroups only in groups that were told to before they
 * had any. */
static int open_parent(int k, struct sg_error *e)
{
    if (k == CPUACCT && !has_cpuacct()) {
        parents[k] = -1;
        return 0;
    }
    parents[k] =
        k == MEMORY ? cgroup_hold_top(controllers[k], e) : cgroup_open_top(controllers[k], true, e);
    if (k == MEMORY && parents[k] >= 0)
        file_write(parents[k], "memory.use_hierarchy", "1");
    return parents[k] < 0 ? parents[k] : 0;
}

/* The device rules are the same for all sandboxes, so they share one group. A new group, or one
 * that a crash left half made, still allows everything. */
static int set_devices(int dir, struct sg_error *e)
{
    AUTO(free_p) char *list = NULL;
    int r = file_read(dir, "devices.list", 4096, &list, NULL);

    if (r == 0 && strncmp(list, "a ", 2) != 0)
        return 0;
    if (r == 0)
        r = file_write(dir, "devices.deny", "a");
    for (size_t i = 0; r == 0 && i < ARRAY_SIZE(devices_allowed); i++)
        r = file_write(dir, "devices.allow", devices_allowed[i]);
    if (r < 0)
        return err_set(e, SG_ERR_INTERNAL, r, "set device rules: %s", strerror(-r));
    return 0;
}

static int open_parents(struct sg_error *e)
{
    int r = 0;

    for (int k = 0; k < N_CONTROLLERS && r == 0 && !parents_open; k++)
        r = open_parent(k, e);
    if (r == 0 && !parents_open)
        r = set_devices(parents[DEVICES], e);
    parents_open |= r == 0;
    return r;
}

static int v1_open_doors(struct cgroup *c, struct cgroup_doors *ret, struct sg_error *e)
{
    int r = 0;

    ret->n = 0;
    for (int k = 0; k < N_CONTROLLERS && r == 0; k++) {
        int dir = k == DEVICES ? parents[k] : c->dir[k];
        if (dir >= 0)
            r = cgroup_doors_add(ret, dir, "tasks", e);
    }
    if (r < 0)
        cgroup_doors_close(ret);
    return r;
}

static int v1_account(struct cgroup *c, struct sg_error *e)
{
    return parents[CPUACCT] < 0 ? 0 : cgroup_open_group(c, parents[CPUACCT], CPUACCT, e);
}

/* The directory where processor time is counted; -1: it is not. */
static int cpuacct_dir(const struct cgroup *c)
{
    return parents[CPUACCT] < 0 ? c->dir[CPU] : c->dir[CPUACCT];
}

/* memsw >= memory must hold at every moment, so the order of the two writes depends on the
 * direction: a new group and a lower limit want the memory first. With swap accounting off the
 * second file is absent, and there is no limit to set. */
static int set_memory(int dirfd, uint64_t bytes)
{
    int r;

    cgroup_put_u64(dirfd, "memory.max_usage_in_bytes", 0);
    r = cgroup_put_u64(dirfd, "memory.limit_in_bytes", bytes);
    if (r == -EINVAL) {
        r = cgroup_put_u64(dirfd, "memory.memsw.limit_in_bytes", bytes);
        return r < 0 ? r : cgroup_put_u64(dirfd, "memory.limit_in_bytes", bytes);
    }
    if (r == 0)
        r = cgroup_put_u64(dirfd, "memory.memsw.limit_in_bytes", bytes);
    return r == -ENOENT ? 0 : r;
}

static int v1_set_limits(struct cgroup *c, const struct sg_limits *l, struct sg_error *e)
{
    int r = set_memory(c->dir[MEMORY], l->memory_bytes);

    if (r == 0)
        r = cgroup_put_u64(c->dir[PIDS], "pids.max", l->pids + 1); /* the agent is one */
    if (r == 0)
        r = cgroup_put_u64(c->dir[CPU], "cpu.cfs_quota_us", (uint64_t)l->cpus_milli * 100);
    if (r == 0 && c->hurried)
        r = cgroup_put_u64(c->dir[CPU], "cpu.shares", SHARES);
    if (r < 0)
        return cgroup_not_limited(c, r, e);
    c->hurried = false;
    if (cpuacct_dir(c) >= 0)
        cgroup_put_u64(cpuacct_dir(c), "cpuacct.usage", 0);
    return 0;
}

static void v1_hurry(struct cgroup *c, uint32_t siblings)
{
    if (siblings < CGROUP_CROWD)
        return;
    c->hurried = true;
    cgroup_put_u64(c->dir[CPU], "cpu.shares", (uint64_t)SHARES * siblings);
}

static bool v1_frozen(struct cgroup *c)
{
    AUTO(free_p) char *state = NULL;

    return file_read(c->dir[FREEZER], "freezer.state", 64, &state, NULL) == 0 &&
           strncmp(state, "FROZEN", 6) == 0;
}

static bool v1_was_full(struct cgroup *c)
{
    uint64_t peak = cgroup_read_u64(c->dir[MEMORY], "memory.max_usage_in_bytes");

    cgroup_put_u64(c->dir[MEMORY], "memory.max_usage_in_bytes", 0);
    return peak + NEAR_BYTES >= cgroup_read_u64(c->dir[MEMORY], "memory.limit_in_bytes");
}

/* v1 tells of a kill by an event only. An event of a group above counts for this group as well. */
static uint64_t v1_ooms(int dir, int *watch, uint64_t so_far)
{
    AUTO(close_p) int control = -1;
    char text[32];
    uint64_t n;

    if (*watch < 0) {
        control = openat(dir, "memory.oom_control", O_RDONLY | O_CLOEXEC);
        *watch = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
        snprintf(text, sizeof(text), "%d %d", *watch, control);
        file_write(dir, "cgroup.event_control", text);
    }
    return so_far + (read(*watch, &n, sizeof(n)) == (ssize_t)sizeof(n) ? n : 0);
}

static void v1_usage(struct cgroup *c, struct cgroup_usage *ret)
{
    int cpuacct = cpuacct_dir(c);

    cgroup_memory(&cgroup_v1, c->dir[MEMORY], ret);
    ret->cpu_usec = cpuacct < 0 ? 0 : cgroup_read_u64(cpuacct, "cpuacct.usage") / 1000;
}

static void v1_kill(struct cgroup *c)
{
    cgroup_kill_listed(c->dir[PIDS], "cgroup.procs");
    file_write(c->dir[FREEZER], "freezer.state", "THAWED"); /* a frozen task does not die */
}

static bool v1_empty(struct cgroup *c)
{
    AUTO(free_p) char *text = NULL;
    size_t len = 0;

    return file_read(c->dir[PIDS], "cgroup.procs", 4u << 20, &text, &len) == 0 && len == 0;
}

static int v1_tops(bool make, int ret[CGROUP_TOPS_MAX], struct sg_error *e)
{
    int r = make ? open_parents(e) : 0;

    if (r < 0)
        return r;
    for (int k = 0; k < CGROUP_TOPS_MAX; k++)
        ret[k] = -1;
    for (int k = 0; k < N_OWN; k++)
        if (make)
            ret[k] = parents[k];
        else if (k != CPUACCT || has_cpuacct())
            ret[k] = cgroup_open_top(controllers[k], false, NULL);
    return 0;
}

/* Each hierarchy has its own list of processes, and a crash may have come between two attaches, so
 * each list is killed. A frozen task does not die, so it is thawed. */
static bool v1_strike(int dir)
{
    bool busy = cgroup_kill_listed(dir, "cgroup.procs") > 0;

    if (busy)
        file_write(dir, "freezer.state", "THAWED");
    return busy;
}

static int v1_hand_down(int dir UNUSED, const char *where UNUSED, struct sg_error *e UNUSED)
{
    /* in v1 every group has its hierarchy's controllers */
    return 0;
}

static int v1_limit_memory(int dir, uint64_t bytes)
{
    return set_memory(dir, bytes ? bytes : UINT64_MAX >> 1);
}

static void v1_remove_tops(void)
{
    for (int k = 0; k < N_CONTROLLERS; k++) {
        AUTO(close_p)
        int top =
            k == CPUACCT && !has_cpuacct() ? -1 : cgroup_open_top(controllers[k], false, NULL);
        if (top >= 0 && unlinkat(top, "../sandglass", AT_REMOVEDIR) < 0)
            return;
    }
}

static const char *const stat_keys[] = {"total_cache", "total_inactive_file", "total_active_file"};

const struct cgroup_ops cgroup_v1 = {
    .name = "v1",
    .reusable = true,
    .hierarchies = controllers,
    .n_groups = CPUACCT,
    .pids = PIDS,
    .freezer = FREEZER,
    .limit_file = "memory.limit_in_bytes",
    .usage_file = "memory.usage_in_bytes",
    .peak_file = "memory.max_usage_in_bytes",
    .oom_file = "memory.oom_control",
    .freeze_file = "freezer.state",
    .frozen_text = "FROZEN",
    .thawed_text = "THAWED",
    .stat_keys = stat_keys,
    .open_doors = v1_open_doors,
    .set_limits = v1_set_limits,
    .account = v1_account,
    .frozen = v1_frozen,
    .was_full = v1_was_full,
    .usage = v1_usage,
    .hurry = v1_hurry,
    .kill = v1_kill,
    .empty = v1_empty,
    .tops = v1_tops,
    .strike = v1_strike,
    .hand_down = v1_hand_down,
    .limit_memory = v1_limit_memory,
    .ooms = v1_ooms,
    .remove_tops = v1_remove_tops,
};
