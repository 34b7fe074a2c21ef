/* Builds the root directory of a sandbox from detached mounts.
 *
 * The spawner lives in a mount namespace that has two mounts only, so that cloning it is cheap and
 * shows nothing: a tiny read-only tmpfs and a /proc. (The kernel lets a user namespace mount /proc
 * only where one is fully visible already.)
 *
 *   /new         where the sandbox's root is attached
 *   /aside       proc, dev, sys and usr/local of the sandbox, until they are attached to its root
 *   /mask/file   cover what /proc should not show. Both have mode 000 and belong to the host's
 *   /mask/dir    root, who is nobody inside, so even root inside cannot open them
 *   /dev         the device nodes
 *   /sys, /same  what all sandboxes of the domain have in /sys and /proc (view.h)
 *   /proc        of W */
#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "lib/base/fault.h"
#include "lib/base/fd.h"
#include "lib/base/sys.h"
#include "inside/stage/boot_id.h"
#include "inside/stage/defences.h"
#include "inside/stage/places.h"
#include "inside/stage/stage.h"
#include "inside/stage/view.h"

/* Files that tell about the host or its other tenants, or could be used to change the host. */
static const char *masked_files[] = {
    "config.gz",   "fb",           "interrupts",  "iomem",         "ioports",
    "kallsyms",    "kcore",        "key-users",   "keys",          "kmsg",
    "kpagecgroup", "kpagecount",   "kpageflags",  "latency_stats", "locks",
    "modules",     "pagetypeinfo", "sched_debug", "slabinfo",      "sysrq-trigger",
    "timer_list",  "timer_stats",  "vmallocinfo",
};
static const char *masked_dirs[] = {"acpi", "asound", "driver", "dynamic_debug", "scsi"};
/* Programs need to read these; nobody may write them. */
static const char *readonly_dirs[] = {"sys", "irq", "bus", "fs"};

static const char *const nested_limits[] = {
    "user_namespaces", "mnt_namespaces", "net_namespaces",    "pid_namespaces",
    "ipc_namespaces",  "uts_namespaces", "cgroup_namespaces", "time_namespaces",
};

/* Directories of the host's /usr that a sandbox sees. */
static const char *const usr_shown[] = {"bin",   "games",   "include", "lib",  "lib32",
                                        "lib64", "libexec", "libx32",  "sbin", "share"};

#define INOTIFY_INSTANCES "32"
#define INOTIFY_WATCHES   "16384"

#define ASIDE      "/aside"
#define PROC_FLAGS (MS_NOSUID | MS_NODEV | MS_NOEXEC)

#define TINY_FLAGS (MS_NOSUID | MS_NOEXEC)

static const struct {
    const char *path;
    mode_t mode;
    unsigned major, minor;
} tiny_nodes[] = {
    {"new", S_IFDIR | 0755, 0, 0},         {"proc", S_IFDIR | 0755, 0, 0},
    {"aside", S_IFDIR | 0755, 0, 0},       {"aside/proc", S_IFDIR | 0755, 0, 0},
    {"aside/dev", S_IFDIR | 0755, 0, 0},   {"mask", S_IFDIR | 0755, 0, 0},
    {"mask/dir", S_IFDIR, 0, 0},           {"mask/empty", S_IFDIR | 0555, 0, 0},
    {"aside/local", S_IFDIR | 0755, 0, 0}, {"mask/file", S_IFREG, 0, 0},
    {"dev", S_IFDIR | 0755, 0, 0},         {"dev/pts", S_IFDIR | 0755, 0, 0},
    {"dev/shm", S_IFDIR | 0755, 0, 0},     {"dev/null", S_IFCHR | 0666, 1, 3},
    {"dev/zero", S_IFCHR | 0666, 1, 5},    {"dev/full", S_IFCHR | 0666, 1, 7},
    {"dev/random", S_IFCHR | 0666, 1, 8},  {"dev/urandom", S_IFCHR | 0666, 1, 9},
    {"dev/tty", S_IFCHR | 0666, 5, 0},
};

static const struct {
    const char *path, *to;
} tiny_links[] = {
    {"dev/fd", "/proc/self/fd"},       {"dev/stdin", "/proc/self/fd/0"},
    {"dev/stdout", "/proc/self/fd/1"}, {"dev/stderr", "/proc/self/fd/2"},
    {"dev/ptmx", "pts/ptmx"},
};

static int make_tiny_root(struct sg_error *e)
{
    if (mount("sandglass", "/tmp", "tmpfs", TINY_FLAGS, "mode=0755,size=128k,nr_inodes=80") < 0 ||
        chdir("/tmp") < 0)
        return err_errno(e, "mount the domain's tmpfs");
    for (size_t i = 0; i < ARRAY_SIZE(tiny_nodes); i++) {
        mode_t mode = tiny_nodes[i].mode;
        int r = S_ISDIR(mode) ? mkdir(tiny_nodes[i].path, mode & 07777)
                              : mknod(tiny_nodes[i].path, mode,
                                      makedev(tiny_nodes[i].major, tiny_nodes[i].minor));
        if (r < 0)
            return err_errno(e, "make '%s' in the domain's tmpfs", tiny_nodes[i].path);
    }
    for (size_t i = 0; i < ARRAY_SIZE(tiny_links); i++)
        if (symlink(tiny_links[i].to, tiny_links[i].path) < 0)
            return err_errno(e, "make '%s' in the domain's tmpfs", tiny_links[i].path);
    if (mount("proc", "proc", "proc", PROC_FLAGS, NULL) < 0)
        return err_errno(e, "mount the domain's /proc");
    return view_prepare(e);
}

static int pivot_here(struct sg_error *e)
{
    if (sys_pivot_root(".", ".") < 0 || umount2(".", MNT_DETACH) < 0 || chdir("/") < 0)
        return err_errno(e, "pivot_root");
    return 0;
}

int root_prepare(struct sg_error *e)
{
    int r;

    umask(0);
    if (unshare(CLONE_NEWNS) < 0)
        return err_errno(e, "make the domain's mount namespace");
    if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
        return err_errno(e, "make mounts private");
    r = make_tiny_root(e);
    if (r < 0)
        return r;
    r = pivot_here(e);
    if (r < 0)
        return r;
    if (mount(NULL, "/", NULL, MS_REMOUNT | MS_BIND | MS_RDONLY | TINY_FLAGS, NULL) < 0)
        return err_errno(e, "make the domain's tmpfs read-only");
    return 0;
}

/* Kernels differ in what /proc has: a missing entry is fine. */
static int mask(const char *names[], size_t n, const char *with, struct sg_error *e)
{
    char path[64];

    for (size_t i = 0; i < n; i++) {
        if (!names[i])
            continue;
        snprintf(path, sizeof(path), ASIDE "/proc/%s", names[i]);
        if (mount(with, path, NULL, MS_BIND, NULL) < 0 && errno != ENOENT)
            return err_errno(e, "mask %s", path + sizeof(ASIDE) - 1);
    }
    return 0;
}

static void strike_absent(const char *names[], size_t n)
{
    char path[64];

    for (size_t i = 0; i < n; i++) {
        snprintf(path, sizeof(path), "/proc/%s", names[i] ? names[i] : "");
        if (access(path, F_OK) < 0)
            names[i] = NULL;
    }
}

void root_learn(void)
{
    strike_absent(masked_files, ARRAY_SIZE(masked_files));
    strike_absent(masked_dirs, ARRAY_SIZE(masked_dirs));
    strike_absent(readonly_dirs, ARRAY_SIZE(readonly_dirs));
}

static int make_readonly(struct sg_error *e)
{
    char path[64];

    for (size_t i = 0; i < ARRAY_SIZE(readonly_dirs); i++) {
        if (!readonly_dirs[i])
            continue;
        snprintf(path, sizeof(path), ASIDE "/proc/%s", readonly_dirs[i]);
        if (mount(path, path, NULL, MS_BIND, NULL) < 0 && errno == ENOENT)
            continue;
        if (mount(NULL, path, NULL, MS_REMOUNT | MS_BIND | MS_RDONLY | PROC_FLAGS, NULL) < 0)
            return err_errno(e, "make %s read-only", path + sizeof(ASIDE) - 1);
    }
    return 0;
}

static int set_user_limit(const char *name, const char *value, struct sg_error *e)
{
    char path[64];
    int r;

    snprintf(path, sizeof(path), ASIDE "/proc/sys/user/max_%s", name);
    r = file_write(AT_FDCWD, path, value);
    if (r < 0 && r != -ENOENT)
        return err_internal(e, r, "write %s", path + sizeof(ASIDE) - 1);
    return 0;
}

/* Makes the kernel itself refuse new namespaces inside, whatever the system-call filter says. */
static int forbid_nested_namespaces(struct sg_error *e)
{
    int r = 0;

    for (size_t i = 0; i < ARRAY_SIZE(nested_limits) && r == 0; i++)
        r = set_user_limit(nested_limits[i], "0", e);
    return r;
}

/* The sandboxes of a domain share the host's limit on inotify: none may take all of it. */
static int share_inotify(struct sg_error *e)
{
    int r = set_user_limit("inotify_instances", INOTIFY_INSTANCES, e);

    return r < 0 ? r : set_user_limit("inotify_watches", INOTIFY_WATCHES, e);
}

static int mount_proc(unsigned omit, struct sg_error *e)
{
    int r = 0;

    if (mount("proc", ASIDE "/proc", "proc", PROC_FLAGS, NULL) < 0)
        return err_errno(e, "mount /proc");
    if (!DEFENCE_OMITTED(omit, DEFENCE_NESTED_NS))
        r = forbid_nested_namespaces(e);
    if (r == 0 && !DEFENCE_OMITTED(omit, DEFENCE_UIDS))
        r = share_inotify(e);
    if (r < 0 || DEFENCE_OMITTED(omit, DEFENCE_PROC_MASK))
        return r;
    r = mask(masked_files, ARRAY_SIZE(masked_files), "/mask/file", e);
    if (r == 0)
        r = mask(masked_dirs, ARRAY_SIZE(masked_dirs), "/mask/dir", e);
    return r < 0 ? r : make_readonly(e);
}

static int mount_dev(struct sg_error *e)
{
    if (mount("/dev", ASIDE "/dev", NULL, MS_BIND, NULL) < 0)
        return err_errno(e, "mount /dev");
    if (mount("devpts", ASIDE "/dev/pts", "devpts", MS_NOSUID | MS_NOEXEC,
              "newinstance,ptmxmode=0666,mode=0620,gid=5,max=64") < 0)
        return err_errno(e, "mount /dev/pts");
    return 0;
}

static int attach_mounts(const struct stage_setup *setup, const int *mounts, struct sg_error *e)
{
    for (uint32_t i = 0; i < setup->n_mounts; i++) {
        AUTO(close_p) int root = open("/new", O_PATH | O_DIRECTORY | O_CLOEXEC), at = -1;
        struct stat st;
        int r;

        if (fstat(mounts[i], &st) < 0)
            return err_errno(e, "stat the source of '%s'", setup->targets[i]);
        r = root_make_target(root, setup->targets[i], S_ISDIR(st.st_mode), 0, &at, e);
        if (r < 0)
            return r;
        if (syscall(SYS_move_mount, mounts[i], "", at, "",
                    MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH) < 0)
            return err_errno(e, "mount '%s'", setup->targets[i]);
    }
    return 0;
}

static int leave_old_root(unsigned omit, struct sg_error *e)
{
    if (chdir("/new") < 0)
        return err_errno(e, "enter the new root");
    if (DEFENCE_OMITTED(omit, DEFENCE_PIVOT)) {
        if (mkdir("oldroot", 0755) < 0 || sys_pivot_root(".", "oldroot") < 0 || chdir("/") < 0)
            return err_errno(e, "pivot_root");
        return 0;
    }
    return pivot_here(e);
}

int root_build(const struct spawn_request *q, struct view_fds *ret_view, struct sg_error *e)
{
    int r = mount_dev(e);

    if (r == 0)
        r = mount_proc(q->omit, e);
    return r < 0 ? r : view_build(q, ASIDE "/proc", ASIDE "/sys", ret_view, e);
}

static void closedir_p(DIR **d)
{
    if (*d)
        closedir(*d);
}

static bool is_shown(const char *name)
{
    for (size_t i = 0; i < ARRAY_SIZE(usr_shown); i++)
        if (strcmp(name, usr_shown[i]) == 0)
            return true;
    return false;
}

/* Covers everything else that the host has in /usr, so that only the listed directories show. */
static int cover_unlisted(struct sg_error *e)
{
    AUTO(closedir_p) DIR *d = opendir("/new/usr");
    struct dirent *entry;
    char path[sizeof("/new/usr/") + NAME_MAX];

    if (!d)
        return err_errno(e, "list /usr");
    while ((entry = readdir(d)) != NULL) {
        const char *name = entry->d_name;
        const char *cover = entry->d_type == DT_DIR ? "/mask/empty" : "/mask/file";
        if (entry->d_type == DT_LNK || strcmp(name, ".") == 0 || strcmp(name, "..") == 0 ||
            strcmp(name, "local") == 0 || is_shown(name))
            continue;
        snprintf(path, sizeof(path), "/new/usr/%s", name);
        if (mount(cover, path, NULL, MS_BIND, NULL) < 0)
            return err_errno(e, "cover %s", path + 4);
    }
    return 0;
}

/* Attaches the host's /usr, or that of the world, with the sandbox's own /usr/local in it: that is a
 * directory of the root layer. */
static int attach_usr(int usr, struct sg_error *e)
{
    if (mount("/new/usr/local", ASIDE "/local", NULL, MS_BIND, NULL) < 0 ||
        sys_move_mount(usr, AT_FDCWD, "/new/usr") < 0 ||
        mount(ASIDE "/local", "/new/usr/local", NULL, MS_MOVE, NULL) < 0)
        return err_errno(e, "attach /usr and /usr/local; %s must have both",
                         root_usr == ROOT_USR_HOST ? "the host" : "the template");
    return root_usr == ROOT_USR_HOST ? cover_unlisted(e) : 0;
}

/* Makes sure that the names of these directories lead to them. Nothing can change that afterwards,
 * because nothing runs inside yet. */
static int check_places(int root, struct sg_error *e)
{
    AUTO(places_done) struct places p = PLACES_NONE;
    int r = places_mend(root, e);

    if (r == 0)
        r = places_open(root, root_usr != ROOT_USR_BARE, &p, e);
    return r < 0 ? err_in_the_way(e, r) : 0;
}

int root_enter(const struct stage_setup *setup, const int *mounts, unsigned omit,
               struct sg_error *e)
{
    int r;

    if (sys_move_mount(mounts[0], AT_FDCWD, "/new") < 0)
        return err_errno(e, "attach the root layer");
    if (setup->flags & STAGE_WORLD)
        root_usr = setup->flags & STAGE_BARE ? ROOT_USR_BARE : ROOT_USR_COVERED;
    r = check_places(mounts[0], e);
    if (r == 0 && root_usr != ROOT_USR_BARE)
        r = attach_usr(mounts[1], e);
    if (r < 0)
        return r;
    if (mount(ASIDE "/dev", "/new/dev", NULL, MS_MOVE, NULL) < 0 ||
        mount(ASIDE "/proc", "/new/proc", NULL, MS_MOVE, NULL) < 0 ||
        mount(ASIDE "/sys", "/new/sys", NULL, MS_MOVE, NULL) < 0)
        return err_errno(e, "attach /dev, /proc and /sys");
    r = boot_id_renew(e);
    if (r < 0)
        return r;
    /* Shared memory is a directory of the root layer, so that one limit covers both. */
    if (mount("/new/run/shm", "/new/dev/shm", NULL, MS_BIND, NULL) < 0)
        return err_errno(e, "attach /dev/shm");
    r = attach_mounts(setup, mounts + STAGE_FIXED_FDS, e);
    return r < 0 ? r : leave_old_root(omit, e);
}
