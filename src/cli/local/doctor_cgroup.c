/* Checks of control groups, version 1 and 2. */
#include <fcntl.h>
#include <mntent.h>
#include <stdio.h>
#include <sys/stat.h>

#include "lib/base/fd.h"
#include "cli/local/doctor.h"

#define MOUNTS "/proc/self/mounts"
#define V1_FIX "mount it: mount -t cgroup -o %s cgroup /sys/fs/cgroup/%s"
#define V2_FIX "let the parent group hand it down: echo +%s > .../cgroup.subtree_control"

/* Finds the first mount of a type that has an option (NULL: any). False if there is none. */
static bool find_mount(const char *type, const char *option, char *ret_dir, size_t cap)
{
    FILE *f = setmntent(MOUNTS, "re");
    struct mntent entry, *m;
    char buf[4096];
    bool found = false;

    if (!f)
        return false;
    while (!found && (m = getmntent_r(f, &entry, buf, sizeof(buf)))) {
        found = strcmp(m->mnt_type, type) == 0 && (!option || hasmntopt(m, option));
        if (found)
            snprintf(ret_dir, cap, "%s", m->mnt_dir);
    }
    endmntent(f);
    return found;
}

/* Makes a group and removes it again, which fails on a read-only mount or without the rights. */
static int try_group(const char *dir)
{
    char path[256];

    snprintf(path, sizeof(path), "%.200s/sandglass-doctor.%d", dir, (int)getpid());
    if (mkdir(path, 0700) < 0)
        return -errno;
    return rmdir(path) < 0 ? -errno : 0;
}

/* Whether a v2 hierarchy offers a controller at its top. */
static bool v2_offers(const char *dir, const char *controller)
{
    AUTO(free_p) char *text = NULL;
    char path[256], *save = NULL;
    size_t len;

    snprintf(path, sizeof(path), "%.200s/cgroup.controllers", dir);
    if (file_read(AT_FDCWD, path, 4096, &text, &len) < 0)
        return false;
    for (char *w = strtok_r(text, " \n", &save); w; w = strtok_r(NULL, " \n", &save))
        if (strcmp(w, controller) == 0)
            return true;
    return false;
}

static void check_mode(struct check_result *r)
{
    char dir[128];
    bool v1 = find_mount("cgroup", "memory", dir, sizeof(dir)) ||
              find_mount("cgroup", "pids", dir, sizeof(dir));
    bool v2 = find_mount("cgroup2", NULL, dir, sizeof(dir));

    if (v1 && v2)
        check_ok(r, "hybrid: controllers in version 1");
    else if (v1)
        check_ok(r, "version 1");
    else if (v2)
        check_ok(r, "version 2, %s", dir);
    else {
        check_missing(r, "not mounted");
        check_fix(r, "mount -t cgroup2 cgroup2 /sys/fs/cgroup");
    }
}

static bool only_v2(void)
{
    char dir[128];

    return find_mount("cgroup2", NULL, dir, sizeof(dir)) &&
           !find_mount("cgroup", "memory", dir, sizeof(dir));
}

struct controller {
    const char *name, *only_v2; /* NULL, or why version 2 alone has none */
};

/* Each controller keeps one of the limits. Without it no sandbox may run. */
static void check_controller(struct check_result *r)
{
    const struct controller *c = r->about;
    const char *name = c->name;
    char dir[128];

    if (c->only_v2 && only_v2())
        return check_ok(r, "%s", c->only_v2);
    bool v1 = find_mount("cgroup", name, dir, sizeof(dir));
    bool v2 = !v1 && find_mount("cgroup2", NULL, dir, sizeof(dir)) && v2_offers(dir, name);
    int err = v1 || v2 ? try_group(dir) : -ENOENT;

    if (err == 0)
        return check_ok(r, "version %d, %s", v1 ? 1 : 2, dir);
    if (v1 || v2)
        check_missing(r, "no group can be made in %s: %s", dir, strerror(-err));
    else
        check_missing(r, "not offered by this kernel or by the group we are in");
    if (v1 || v2)
        check_fix(r, "run as root with cgroups mounted read-write: mount -o remount,rw %s", dir);
    else if (find_mount("cgroup2", NULL, dir, sizeof(dir)) &&
             !find_mount("cgroup", NULL, dir, sizeof(dir)))
        check_fix(r, V2_FIX, name);
    else
        check_fix(r, V1_FIX, name, name);
}

static bool host_has_swap(void)
{
    AUTO(free_p) char *text = NULL;
    size_t len;

    /* The first line is a heading. */
    return file_read(AT_FDCWD, "/proc/swaps", 65536, &text, &len) == 0 && strchr(text, '\n') &&
           strchr(text, '\n')[1] != '\0';
}

static void check_swap(struct check_result *r)
{
    char dir[128], path[256];

    if (!host_has_swap())
        return check_ok(r, "the host has no swap");
    if (only_v2())
        return check_ok(r, "limited by memory.swap.max");
    if (find_mount("cgroup", "memory", dir, sizeof(dir))) {
        snprintf(path, sizeof(path), "%s/memory.memsw.limit_in_bytes", dir);
        if (access(path, F_OK) == 0)
            return check_ok(r, "limited by memory.memsw");
    }
    check_warn(r, "not accounted: sandboxes may fill the host's swap");
    check_fix(r, "boot with swapaccount=1 on the kernel's command line, or turn swap off");
}

#define CONTROLLER(...) check_controller, (&(const struct controller){__VA_ARGS__})
static const struct check cgroup_checks[] = {
    {"mode", check_mode, NULL},
    {"memory", CONTROLLER("memory", NULL)},
    {"swap", check_swap, NULL},
    {"pids", CONTROLLER("pids", NULL)},
    {"cpu", CONTROLLER("cpu", NULL)},
    {"freezer", CONTROLLER("freezer", "part of version 2")},
    {"devices", CONTROLLER("devices", "version 2 uses BPF programs instead")},
};
const struct check_group doctor_cgroups = {"Control groups", cgroup_checks,
                                           ARRAY_SIZE(cgroup_checks)};
