#include "inside/stage/view.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>

#include "inside/agent/agent.h"
#include "inside/stage/defences.h"
#include "inside/stage/stage.h"
#include "lib/base/fd.h"

#define FLAGS    (MS_NOSUID | MS_NODEV | MS_NOEXEC)
#define OWN      "/aside/limits" /* the sandbox's tmpfs, writable; programs see a read-only clone */
#define PATH_LEN 128

/* The domain's part. A name with neither a text nor a target is a directory. */
struct node {
    const char *path, *text, *target;
};
static const struct node common[] = {
    {.path = "aside/sys"},
    {.path = "aside/limits"},
    {.path = "sys"},
    {.path = "sys/limits"},
    {.path = "sys/devices"},
    {.path = "sys/devices/system"},
    {.path = "sys/devices/system/cpu"},
    {.path = "sys/devices/system/cpu/online", .target = "/sys/limits/cpus"},
    {.path = "sys/devices/system/cpu/possible", .target = "/sys/limits/cpus"},
    {.path = "sys/devices/system/cpu/present", .target = "/sys/limits/cpus"},
    {.path = "sys/fs"},
    {.path = "sys/fs/cgroup"},
    {.path = "same"},
    {"same/swaps", "Filename\t\t\t\tType\t\tSize\t\tUsed\t\tPriority\n", NULL},
    /* Java takes hierarchies that are all 0 for v2, and then reads no v1 file. */
    {"same/cgroups",
     "#subsys_name\thierarchy\tnum_cgroups\tenabled\n"
     "cpuset\t0\t1\t1\ncpu\t0\t1\t1\ncpuacct\t0\t1\t1\nmemory\t0\t1\t1\npids\t0\t1\t1\n",
     NULL},
};
static const struct node of_v1[] = {
    {.path = "sys/fs/cgroup/memory"},
    {.path = "sys/fs/cgroup/cpu"},
    {.path = "sys/fs/cgroup/cpuacct"},
    {.path = "sys/fs/cgroup/pids"},
    {"sys/fs/cgroup/cgroup.controllers", "cpu memory pids\n", NULL},
    {"sys/fs/cgroup/memory.swap.max", "0\n", NULL},
    {"sys/fs/cgroup/memory.swap.current", "0\n", NULL},
    {.path = "sys/fs/cgroup/memory.max", .target = "memory/memory.limit_in_bytes"},
    {.path = "sys/fs/cgroup/memory.current", .target = "memory/memory.usage_in_bytes"},
    {.path = "sys/fs/cgroup/memory.peak", .target = "memory/memory.max_usage_in_bytes"},
    {.path = "sys/fs/cgroup/memory.stat", .target = "memory/memory.stat"},
    {.path = "sys/fs/cgroup/cpu.max", .target = "/sys/limits/cpu.max"},
    {.path = "sys/fs/cgroup/cpu.stat", .target = "cpu/cpu.stat"},
    {.path = "sys/fs/cgroup/pids.max", .target = "pids/pids.max"},
    {.path = "sys/fs/cgroup/pids.current", .target = "pids/pids.current"},
    {.path = "sys/fs/cgroup/cgroup.procs", .target = "pids/cgroup.procs"},
};

/* The v1 hierarchies: which controllers each is mounted with, as the mount option must say it. */
enum { MEMORY, CPU, CPUACCT, PIDS, CPUSET, N_GROUPS };
static const char *const groups[N_GROUPS] = {"memory", "cpu", "cpuacct", "pids", "cpuset"};
static char options[N_GROUPS][64];
static bool v1;

static bool has_word(const char *list, const char *word)
{
    size_t n = strlen(word);

    for (const char *p = list; *p; p += strcspn(p, ","), p += *p == ',')
        if (strncmp(p, word, n) == 0 && (p[n] == ',' || p[n] == '\0'))
            return true;
    return false;
}

/* Reads lines such as "4:cpu,cpuacct:/". v2's is "0::/". Every sandbox is a copy of this process, so
 * nothing is put on the heap. */
static void learn_groups(void)
{
    AUTO(close_p) int fd = open("/proc/self/cgroup", O_RDONLY | O_CLOEXEC);
    char text[4096], list[sizeof(options[0])];
    ssize_t len = fd < 0 ? 0 : read(fd, text, sizeof(text) - 1);

    text[len > 0 ? len : 0] = '\0';
    for (const char *line = text; *line; line = strchrnul(line, '\n'), line += *line == '\n') {
        if (sscanf(line, "%*u:%63[^:]:", list) != 1)
            continue;
        for (int k = 0; k < N_GROUPS; k++)
            if (has_word(list, groups[k]))
                memcpy(options[k], list, sizeof(list));
    }
    v1 = options[MEMORY][0] != '\0';
}

static int make_nodes(const struct node *nodes, size_t n, struct sg_error *e)
{
    for (size_t i = 0; i < n; i++) {
        const struct node *at = &nodes[i];
        AUTO(close_p) int fd = -1;
        int r = 0;

        if (at->target)
            r = symlink(at->target, at->path);
        else if (!at->text)
            r = mkdir(at->path, 0755);
        else if ((fd = open(at->path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0444)) < 0 ||
                 fd_write_all(fd, at->text, strlen(at->text)) < 0)
            r = -1;
        if (r < 0)
            return err_errno(e, "make '%s' in the domain's tmpfs", at->path);
    }
    return 0;
}

int view_prepare(struct sg_error *e)
{
    int r = make_nodes(common, ARRAY_SIZE(common), e);

    learn_groups();
    return r == 0 && v1 ? make_nodes(of_v1, ARRAY_SIZE(of_v1), e) : r;
}

/* ---- in the sandbox -------------------------------------------------------------------------- */

static int make_files(struct view_fds *v, struct sg_error *e)
{
    if (mount("sandglass", OWN, "tmpfs", FLAGS, "mode=0555,size=1m,nr_inodes=8") < 0)
        return err_errno(e, "mount the tmpfs of /sys/limits");
    for (int i = 0; i < (v1 ? VIEW_FILES_MAX_ : VIEW_CPU_MAX); i++) {
        char path[PATH_LEN];

        snprintf(path, sizeof(path), OWN "/%s", view_names[i]);
        v->file[i] = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0444);
        /* A lease is for the owner, and the agent leaves uid 0. */
        if (v->file[i] < 0 || fchown(v->file[i], AGENT_UID, AGENT_UID) < 0)
            return err_errno(e, "make '%s' of /sys/limits", view_names[i]);
    }
    return 0;
}

static int bind(const char *from, const char *to)
{
    return mount(from, to, NULL, MS_BIND, NULL);
}

static int make_readonly(const char *path)
{
    return mount(NULL, path, NULL, MS_REMOUNT | MS_BIND | MS_RDONLY | FLAGS, NULL);
}

/* Only to be seen in the mount table, so a kernel without it will do. The flag comes second: that of
 * a first mount would be the file system's, which is the whole machine's. */
static int mount_token(const char *type, const char *cgroup, const char *option)
{
    return mount(type, cgroup, type, FLAGS, option) < 0 ? 0 : make_readonly(cgroup);
}

/* The sandbox has joined a group of every hierarchy that counts or limits something, but of cpuacct
 * only where processor time is to be counted: else there is one less to join. */
static bool is_own(const struct spawn_request *q, int k)
{
    return k != CPUSET && (k != CPUACCT || q->n_cgroups == STAGE_CGROUPS_MAX ||
                           strcmp(options[k], options[CPU]) == 0);
}

/* Java looks for version 2, newer ones for all hierarchies of version 1 that they know, and if one of
 * these is not in the table they take the machine's memory for theirs. */
static int mount_tokens(const struct spawn_request *q, const char *cgroup)
{
    int r = mount_token("cgroup2", cgroup, NULL);

    for (int k = 0; k < N_GROUPS && r == 0; k++)
        if (options[k][0] != '\0' && !is_own(q, k))
            r = mount_token("cgroup", cgroup, options[k]);
    return r;
}

static int mount_v1(const struct spawn_request *q, const char *cgroup, struct sg_error *e)
{
    if (mount_tokens(q, cgroup) < 0 || bind("/sys/fs/cgroup", cgroup) < 0)
        return err_errno(e, "attach /sys/fs/cgroup");
    for (int k = 0; k < N_GROUPS; k++) {
        char path[PATH_LEN];

        if (options[k][0] == '\0' || !is_own(q, k))
            continue;
        snprintf(path, sizeof(path), "%.100s/%s", cgroup, groups[k]);
        if (mount("cgroup", path, "cgroup", MS_RDONLY | FLAGS, options[k]) < 0)
            return err_errno(e, "mount the sandbox's control group '%s'", groups[k]);
    }
    return 0;
}

static int mount_v2(const char *cgroup, struct sg_error *e)
{
    if (mount("cgroup2", cgroup, "cgroup2", MS_RDONLY | FLAGS, NULL) < 0)
        return err_errno(e, "mount the sandbox's control group");
    return 0;
}

static int cover_one(const char *with, const char *proc, const char *name, struct sg_error *e)
{
    char path[PATH_LEN];

    snprintf(path, sizeof(path), "%s/%s", proc, name);
    if (bind(with, path) < 0 && errno != ENOENT) /* kernels differ in what /proc has */
        return err_errno(e, "cover /proc/%s", name);
    return 0;
}

static int cover_proc(const char *proc, const char *sys, struct sg_error *e)
{
    static const int own[] = {VIEW_MEMINFO, VIEW_STAT, VIEW_LOADAVG, VIEW_CPUINFO};
    static const char *const same[] = {"swaps", "cgroups"};
    char path[PATH_LEN];
    int r = 0;

    for (size_t i = 0; i < ARRAY_SIZE(own) && r == 0; i++) {
        snprintf(path, sizeof(path), "%s/limits/%s", sys, view_names[own[i]]);
        r = cover_one(path, proc, view_names[own[i]], e);
    }
    for (size_t i = 0; i < ARRAY_SIZE(same) && r == 0; i++) {
        snprintf(path, sizeof(path), "/same/%s", same[i]);
        r = cover_one(path, proc, same[i], e);
    }
    return r;
}

int view_build(const struct spawn_request *q, const char *proc, const char *sys,
               struct view_fds *ret, struct sg_error *e)
{
    char path[PATH_LEN];
    int r = make_files(ret, e);

    if (r < 0)
        return r;
    snprintf(path, sizeof(path), "%s/cpuinfo", proc);
    ret->v1 = v1;
    ret->cpuinfo = open(path, O_PATH | O_CLOEXEC);
    if (bind("/sys", sys) < 0)
        return err_errno(e, "attach /sys");
    snprintf(path, sizeof(path), "%s/limits", sys);
    if (bind(OWN, path) < 0 || make_readonly(path) < 0)
        return err_errno(e, "attach /sys/limits");
    snprintf(path, sizeof(path), "%s/fs/cgroup", sys);
    /* Without groups of its own (control builds) it would see those that it was started in. */
    if (q->n_cgroups > 0 && !DEFENCE_OMITTED(q->omit, DEFENCE_CGROUP))
        r = v1 ? mount_v1(q, path, e) : mount_v2(path, e);
    if (r < 0 || DEFENCE_OMITTED(q->omit, DEFENCE_PROC_MASK))
        return r;
    return cover_proc(proc, sys, e);
}

unsigned view_end(const struct view_fds *v, unsigned from)
{
    int last = v->cpuinfo > (int)from ? v->cpuinfo : (int)from;

    for (int i = 0; i < VIEW_FILES_MAX_; i++)
        last = v->file[i] > last ? v->file[i] : last;
    return (unsigned)last + 1;
}
