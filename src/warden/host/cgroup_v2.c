/* The unified hierarchy: one directory, devices by BPF (devices_bpf.c). */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "lib/base/fd.h"
#include "warden/host/cgroup.h"
#include "warden/host/devices_bpf.h"

struct v2 {
    struct cgroup base;
    char path[CGROUP_PATH_MAX]; /* below `sandglass` */
    int dir;
    uint64_t ooms; /* kills that was_full knows of */
};

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

static void v2_free(struct v2 *c)
{
    close_p(&c->dir);
    free(c);
}

static int v2_fill(struct v2 *c, struct sg_error *e)
{
    if (mkdirat(parent, c->path, 0755) < 0 && errno != EEXIST)
        return err_errno(e, "make control group sandglass/%s", c->path);
    c->dir = openat(parent, c->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (c->dir < 0)
        return err_errno(e, "open control group sandglass/%s", c->path);
    return devices_bpf_attach(c->dir, e);
}

static int v2_open_doors(struct cgroup *base, struct cgroup_doors *ret, struct sg_error *e)
{
    ret->n = 0;
    return cgroup_doors_add(ret, CONTAINER_OF(base, struct v2, base)->dir, "cgroup.procs", e);
}

static int v2_open_members(struct cgroup *base, int *ret, struct sg_error *e)
{
    return cgroup_open_procs(CONTAINER_OF(base, struct v2, base)->dir, ret, e);
}

static int v2_create(const char *place, uint32_t slot, struct cgroup **ret, struct sg_error *e)
{
    struct v2 *c;
    int r = open_parent(e);

    if (r < 0)
        return r;
    c = xcalloc(1, sizeof(*c));
    *c = (struct v2){.base.ops = &cgroup_v2, .dir = -1};
    snprintf(c->path, sizeof(c->path), "%s/%u", place, slot);
    r = v2_fill(c, e);
    if (r < 0) {
        v2_free(c);
        return r;
    }
    *ret = &c->base;
    return 0;
}

static int put_u64(int dirfd, const char *file, uint64_t v, const char *suffix)
{
    char text[48];

    snprintf(text, sizeof(text), "%llu%s", (unsigned long long)v, suffix);
    return file_write(dirfd, file, text);
}

static int v2_set_limits(struct cgroup *base, const struct sg_limits *l, struct sg_error *e)
{
    struct v2 *c = CONTAINER_OF(base, struct v2, base);
    int r = put_u64(c->dir, "memory.max", l->memory_bytes, "");

    if (r == 0)
        r = put_u64(c->dir, "pids.max", l->pids + 1, ""); /* the agent is one */
    if (r == 0)
        r = put_u64(c->dir, "cpu.max", (uint64_t)l->cpus_milli * 100, " 100000");
    if (r < 0)
        return err_set(e, SG_ERR_INTERNAL, r, "set limits of control group %s: %s", c->path,
                       strerror(-r));
    file_write(c->dir, "memory.swap.max", "0"); /* absent without swap */
    return 0;
}

static void v2_hurry(struct cgroup *base, uint32_t siblings)
{
    struct v2 *c = CONTAINER_OF(base, struct v2, base);

    if (siblings < CGROUP_CROWD)
        return;
    /* 100 is the default weight, 10,000 the largest. It need not be reset: the group goes with the
     * sandbox. */
    put_u64(c->dir, "cpu.weight", siblings > 100 ? 10000 : siblings * 100, "");
}

static int v2_account(struct cgroup *base, struct sg_error *e)
{
    (void)base, (void)e; /* v2 always counts it */
    return 0;
}

static int v2_freeze(struct cgroup *base, bool on, struct sg_error *e)
{
    struct v2 *c = CONTAINER_OF(base, struct v2, base);
    int r = file_write(c->dir, "cgroup.freeze", on ? "1" : "0");

    if (r < 0)
        return err_set(e, err_kind_of(-r), r, "freeze group %s: %s", c->path, strerror(-r));
    return 0;
}

static bool v2_frozen(struct cgroup *base)
{
    struct v2 *c = CONTAINER_OF(base, struct v2, base);

    return cgroup_read_key(c->dir, "cgroup.events", "frozen") == 1;
}

static void v2_stats(struct cgroup *base, struct cgroup_stats *ret)
{
    struct v2 *c = CONTAINER_OF(base, struct v2, base);

    ret->memory_peak = cgroup_read_u64(c->dir, "memory.peak");
    ret->oom_kills = cgroup_read_key(c->dir, "memory.events", "oom_kill");
    ret->pids_hits = cgroup_read_key(c->dir, "pids.events", "max");
}

static bool v2_was_full(struct cgroup *base)
{
    struct v2 *c = CONTAINER_OF(base, struct v2, base);
    uint64_t before = c->ooms;

    c->ooms = cgroup_read_key(c->dir, "memory.events", "oom");
    return c->ooms > before;
}

static void v2_memory(int dir, struct cgroup_usage *ret)
{
    static const char *const keys[] = {"file", "inactive_file", "active_file"};
    uint64_t values[ARRAY_SIZE(keys)];

    cgroup_read_keys(dir, "memory.stat", ARRAY_SIZE(keys), keys, values);
    *ret = (struct cgroup_usage){.memory_bytes = cgroup_read_u64(dir, "memory.current"),
                                 .memory_cache = values[0],
                                 .memory_reclaimable = values[1] + values[2]};
}

static uint64_t v2_ooms(int dir, int *watch, uint64_t so_far)
{
    (void)watch, (void)so_far;
    return cgroup_read_key(dir, "memory.events.local", "oom");
}

/* A v2 group has only one sandbox, so its counters began with that sandbox. */
static void v2_usage(struct cgroup *base, struct cgroup_usage *ret)
{
    struct v2 *c = CONTAINER_OF(base, struct v2, base);

    v2_memory(c->dir, ret);
    ret->cpu_usec = cgroup_read_key(c->dir, "cpu.stat", "usage_usec");
}

/* cgroup.kill needs Linux 5.14; older kernels get signals by the list. v2 kills frozen tasks
 * too. */
static void kill_dir(int dir)
{
    if (file_write(dir, "cgroup.kill", "1") < 0)
        cgroup_kill_listed(dir, "cgroup.procs");
}

static void v2_kill(struct cgroup *base)
{
    kill_dir(CONTAINER_OF(base, struct v2, base)->dir);
}

static bool v2_empty(struct cgroup *base)
{
    struct v2 *c = CONTAINER_OF(base, struct v2, base);

    return cgroup_read_key(c->dir, "cgroup.events", "populated") == 0;
}

static int v2_destroy(struct cgroup *base, struct sg_error *e)
{
    struct v2 *c = CONTAINER_OF(base, struct v2, base);
    int r = cgroup_rmdir(parent, c->path);

    if (r < 0)
        err_set(e, SG_ERR_INTERNAL, r, "remove control group sandglass/%s: %s", c->path,
                strerror(-r));
    v2_free(c);
    return r;
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
    return bytes ? put_u64(dir, "memory.max", bytes, "") : file_write(dir, "memory.max", "max");
}

static void v2_remove_tops(void)
{
    AUTO(close_p) int top = cgroup_open_top(NULL, false, NULL);

    if (top >= 0)
        unlinkat(top, "../sandglass", AT_REMOVEDIR);
}

const struct cgroup_ops cgroup_v2 = {
    .name = "v2",
    .reusable = false, /* its memory peak cannot be reset */
    .create = v2_create,
    .open_doors = v2_open_doors,
    .open_members = v2_open_members,
    .set_limits = v2_set_limits,
    .account = v2_account,
    .freeze = v2_freeze,
    .frozen = v2_frozen,
    .stats = v2_stats,
    .was_full = v2_was_full,
    .usage = v2_usage,
    .hurry = v2_hurry,
    .kill = v2_kill,
    .empty = v2_empty,
    .destroy = v2_destroy,
    .tops = v2_tops,
    .strike = v2_strike,
    .hand_down = v2_hand_down,
    .limit_memory = v2_limit_memory,
    .memory = v2_memory,
    .ooms = v2_ooms,
    .limit_file = "memory.max",
    .remove_tops = v2_remove_tops,
};
