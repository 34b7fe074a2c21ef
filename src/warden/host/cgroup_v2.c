/* The unified hierarchy: one directory, devices by BPF (devices_bpf.c). */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "lib/base/fd.h"
#include "warden/host/cgroup.h"
#include "warden/host/devices_bpf.h"

static int parent = -1; /* <mount>/sandglass; opened once per process, never closed */

/* Enables all controllers at once; if that is refused, one by one, to find out which is the
 * cause. */
static int v2_hand_down(int dir, const char *where, struct sg_error *e)
{
    static const char *const wanted[] = {"+memory", "+pids", "+cpu"};

    if (file_write(dir, "cgroup.subtree_control", "+memory +pids +cpu") == 0)
        return 0;
    for (size_t i = 0; i < ARRAY_SIZE(wanted); i++) {
        int r = file_write(dir, "cgroup.subtree_control", wanted[i]);
        if (r < 0)
            return err_set(
                e, SG_ERR_UNSUPPORTED, r,
                "enable the cgroup v2 controller '%s' in '%s': %s; see cgroup.controllers there",
                wanted[i] + 1, where, strerror(-r));
    }
    return 0;
}

static int open_parent(struct sg_error *e)
{
    struct cgroup_mount m;
    AUTO(close_p) int top = -1, fd = -1;
    int r;

    if (parent >= 0)
        return 0;
    fd = cgroup_hold_top(NULL, e);
    if (fd < 0)
        return fd;
    r = cgroup_find_mount(NULL, &m);
    if (r < 0)
        return err_set(e, SG_ERR_UNSUPPORTED, r, "cgroup v2 is not mounted");
    top = open(m.path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (top < 0)
        return err_errno(e, "open the control group '%s'", m.path);
    r = v2_hand_down(top, m.path, e);
    if (r == 0)
        r = v2_hand_down(fd, "sandglass", e);
    if (r < 0)
        return r;
    parent = steal_fd(&fd);
    return 0;
}

static int v2_open_doors(struct cgroup *c, struct cgroup_doors *ret, struct sg_error *e)
{
    ret->n = 0;
    return cgroup_doors_add(ret, c->dir[0], "cgroup.procs", e);
}

static int v2_set_limits(struct cgroup *c, const struct sg_limits *l, struct sg_error *e)
{
    int r = cgroup_put_u64(c->dir[0], "memory.max", l->memory_bytes);
    char cpu[48];

    snprintf(cpu, sizeof(cpu), "%llu 100000", (unsigned long long)l->cpus_milli * 100);
    if (r == 0)
        r = cgroup_put_u64(c->dir[0], "pids.max", l->pids + 1); /* the agent is one */
    if (r == 0)
        r = file_write(c->dir[0], "cpu.max", cpu);
    if (r < 0)
        return cgroup_not_limited(c, r, e);
    file_write(c->dir[0], "memory.swap.max", "0"); /* absent without swap */
    return 0;
}

static void v2_hurry(struct cgroup *c, uint32_t siblings)
{
    if (siblings < CGROUP_CROWD)
        return;
    /* 100 is the default weight, 10,000 the largest. It need not be reset: the group goes with the
     * sandbox. */
    cgroup_put_u64(c->dir[0], "cpu.weight", siblings > 100 ? 10000 : siblings * 100);
}

static int v2_account(struct cgroup *c UNUSED, struct sg_error *e UNUSED)
{
    /* v2 always counts it */
    return 0;
}

static bool v2_frozen(struct cgroup *c)
{
    return cgroup_read_key(c->dir[0], "cgroup.events", "frozen") == 1;
}

static bool v2_was_full(struct cgroup *c)
{
    uint64_t before = c->ooms;

    c->ooms = cgroup_read_key(c->dir[0], "memory.events", "oom");
    return c->ooms > before;
}

static uint64_t v2_ooms(int dir, int *watch UNUSED, uint64_t so_far UNUSED)
{
    return cgroup_read_key(dir, "memory.events.local", "oom");
}

/* A v2 group has only one sandbox, so its counters began with that sandbox. */
static void v2_usage(struct cgroup *c, struct cgroup_usage *ret)
{
    cgroup_memory(&cgroup_v2, c->dir[0], ret);
    ret->cpu_usec = cgroup_read_key(c->dir[0], "cpu.stat", "usage_usec");
}

/* cgroup.kill needs Linux 5.14; older kernels get signals by the list. v2 kills frozen tasks
 * too. */
static void kill_dir(int dir)
{
    if (file_write(dir, "cgroup.kill", "1") < 0)
        cgroup_kill_listed(dir, "cgroup.procs");
}

static void v2_kill(struct cgroup *c)
{
    kill_dir(c->dir[0]);
}

static bool v2_empty(struct cgroup *c)
{
    return cgroup_read_key(c->dir[0], "cgroup.events", "populated") == 0;
}

static int v2_tops(bool make, int ret[CGROUP_TOPS_MAX], struct sg_error *e)
{
    int r = make ? open_parent(e) : 0;

    if (r < 0)
        return r;
    for (int k = 0; k < CGROUP_TOPS_MAX; k++)
        ret[k] = -1;
    ret[0] = make ? parent : cgroup_open_top(NULL, false, NULL);
    return 0;
}

static bool v2_strike(int dir)
{
    if (cgroup_read_key(dir, "cgroup.events", "populated") == 0)
        return false;
    kill_dir(dir);
    return true;
}

static int v2_limit_memory(int dir, uint64_t bytes)
{
    return bytes ? cgroup_put_u64(dir, "memory.max", bytes) : file_write(dir, "memory.max", "max");
}

static void v2_remove_tops(void)
{
    AUTO(close_p) int top = cgroup_open_top(NULL, false, NULL);

    if (top >= 0)
        unlinkat(top, "../sandglass", AT_REMOVEDIR);
}

static int v2_prepare(struct cgroup *c, struct sg_error *e)
{
    return devices_bpf_attach(c->dir[0], e);
}

static const char *const hierarchies[CGROUP_TOPS_MAX] = {"cgroup2"};
static const char *const stat_keys[] = {"file", "inactive_file", "active_file"};

const struct cgroup_ops cgroup_v2 = {
    .name = "v2",
    .reusable = false, /* its memory peak cannot be reset */
    .hierarchies = hierarchies,
    .n_groups = 1,
    .limit_file = "memory.max",
    .usage_file = "memory.current",
    .peak_file = "memory.peak",
    .oom_file = "memory.events",
    .freeze_file = "cgroup.freeze",
    .frozen_text = "1",
    .thawed_text = "0",
    .stat_keys = stat_keys,
    .prepare = v2_prepare,
    .open_doors = v2_open_doors,
    .set_limits = v2_set_limits,
    .account = v2_account,
    .frozen = v2_frozen,
    .was_full = v2_was_full,
    .usage = v2_usage,
    .hurry = v2_hurry,
    .kill = v2_kill,
    .empty = v2_empty,
    .tops = v2_tops,
    .strike = v2_strike,
    .hand_down = v2_hand_down,
    .limit_memory = v2_limit_memory,
    .ooms = v2_ooms,
    .remove_tops = v2_remove_tops,
};
