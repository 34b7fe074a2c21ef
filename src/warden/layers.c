#include "warden/layers.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <linux/securebits.h>

#include "base/sys.h"

#define CHILD_STACK (64u * 1024)
#define UPPER_FLAGS (MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV)
#define LOWER_FLAGS (MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_RDONLY)

static const char *const scratch_dirs[] = {"upper", "work"};

/* What the kernel says beyond errno when a mount is refused. */
static int mount_error(int fs, struct sg_error *e, const char *what)
{
    char why[160];
    int saved = errno;
    ssize_t n = fs < 0 ? -1 : read(fs, why, sizeof why - 1);

    errno = saved;
    if (n <= 0)
        return err_errno(e, "%s", what);
    why[n] = '\0';
    why[strcspn(why, "\n")] = '\0';
    return err_errno(e, "%s (%s)", what, n > 2 ? why + 2 : why); /* "e overlay: ..." */
}

static int make_tmpfs(const struct layers_spec *spec, int *ret, struct sg_error *e)
{
    AUTO(close_p) int fs = sys_fsopen("tmpfs");
    char size[24], inodes[24];

    snprintf(size, sizeof size, "%llu", (unsigned long long)spec->disk_bytes);
    snprintf(inodes, sizeof inodes, "%llu", (unsigned long long)spec->disk_inodes);
    if (fs < 0 || sys_fsconfig_string(fs, "size", size) < 0 ||
        sys_fsconfig_string(fs, "nr_inodes", inodes) < 0 ||
        sys_fsconfig_string(fs, "mode", "0755") < 0 || sys_fsconfig_create(fs) < 0)
        return mount_error(fs, e, "make the scratch file system");
    *ret = sys_fsmount(fs, UPPER_FLAGS);
    return *ret < 0 ? err_errno(e, "mount the scratch file system") : 0;
}

static int idmap(int mount_fd, int userns, unsigned set)
{
    struct mount_attr a = {.attr_set = MOUNT_ATTR_IDMAP | set, .userns_fd = (uint64_t)userns};

    return sys_mount_setattr(mount_fd, 0, &a) < 0 ? -errno : 0;
}

static int make_scratch(const struct layers_spec *spec, int *ret, struct sg_error *e)
{
    AUTO(close_p) int fd = -1;
    int r = make_tmpfs(spec, &fd, e);

    if (r < 0)
        return r;
    for (size_t i = 0; i < ARRAY_SIZE(scratch_dirs); i++)
        if (mkdirat(fd, scratch_dirs[i], 0755) < 0 || fchmodat(fd, scratch_dirs[i], 0755, 0) < 0)
            return err_errno(e, "fill the scratch file system");
    *ret = steal_fd(&fd);
    return 0;
}

static int map_scratch(const struct layers_spec *spec, int fd, struct sg_error *e)
{
    int r = idmap(fd, spec->userns, 0);

    if (r == -EINVAL) {
        /* tmpfs has id maps since 6.3. Before, the ids on it are the host's. */
        for (size_t i = 0; i < ARRAY_SIZE(scratch_dirs); i++)
            if (fchownat(fd, scratch_dirs[i], spec->first_id, spec->first_id, 0) < 0)
                return err_errno(e, "give the scratch file system to the sandbox");
        r = 0;
    }
    if (r < 0)
        return err_set(e, SG_ERR_INTERNAL, r, "map the ids of the scratch file system: %s",
                       strerror(-r));
    return 0;
}

int layers_map_dir(int dir, const char *name, int userns, int *ret, struct sg_error *e)
{
    AUTO(close_p)
    int fd = sys_open_tree(dir, "", OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_EMPTY_PATH);
    int r;

    if (fd < 0)
        /* A detached clone counts as a mount namespace. */
        return errno != ENOSPC ? err_errno(e, "clone '%s'", name)
                               : err_set(e, SG_ERR_LIMIT, -EAGAIN,
                                         "the kernel allows no more mount namespaces: raise the "
                                         "sysctl user.max_mnt_namespaces");
    r = idmap(fd, userns, LOWER_FLAGS);
    if (r < 0)
        return err_set(e, r == -EINVAL ? SG_ERR_UNSUPPORTED : SG_ERR_INTERNAL, r,
                       "map the ids of '%s': %s; its file system must support id-mapped mounts",
                       name, strerror(-r));
    *ret = steal_fd(&fd);
    return 0;
}

int layers_open_lower(const struct template *t, int userns, int *ret, struct sg_error *e)
{
    return layers_map_dir(t->dir, TEMPLATE_DIR, userns, ret, e);
}

/* The overlay acts with the file-system ids and capabilities of whoever mounts it. Host root has no
 * id on the mapped layers, so it is the sandbox's root id, with the capabilities kept. */
static int become_mounter(uint32_t id, int *ret_bits)
{
    int bits = prctl(PR_GET_SECUREBITS);

    if (bits < 0 || prctl(PR_SET_SECUREBITS, bits | SECBIT_NO_SETUID_FIXUP) < 0)
        return -errno;
    syscall(SYS_setfsgid, id);
    syscall(SYS_setfsuid, id);
    *ret_bits = bits;
    return 0;
}

static void become_self(int bits)
{
    syscall(SYS_setfsuid, geteuid());
    syscall(SYS_setfsgid, getegid());
    prctl(PR_SET_SECUREBITS, bits);
}

static int create_as(int fs, uint32_t id)
{
    int bits = 0, r = become_mounter(id, &bits);

    if (r < 0) {
        errno = -r;
        return -1;
    }
    r = sys_fsconfig_create(fs);
    int saved = errno;
    become_self(bits);
    errno = saved;
    return r;
}

/* layer: or -1. */
static int configure_root(int fs, int lower_fd, int layer, int scratch)
{
    char lower[80], upper[48], work[48];
    int n = 0;

    if (layer >= 0)
        n = snprintf(lower, sizeof lower, "/proc/self/fd/%d:", layer);
    snprintf(lower + n, sizeof lower - (size_t)n, "/proc/self/fd/%d", lower_fd);
    snprintf(upper, sizeof upper, "/proc/self/fd/%d/upper", scratch);
    snprintf(work, sizeof work, "/proc/self/fd/%d/work", scratch);
    if (fs < 0 || sys_fsconfig_string(fs, "lowerdir", lower) < 0 ||
        sys_fsconfig_string(fs, "upperdir", upper) < 0 ||
        sys_fsconfig_string(fs, "workdir", work) < 0 ||
        sys_fsconfig_string(fs, "redirect_dir", "nofollow") < 0 ||
        sys_fsconfig_string(fs, "metacopy", "off") < 0 ||
        sys_fsconfig_string(fs, "index", "off") < 0 || sys_fsconfig_string(fs, "xino", "off") < 0)
        return -1;
    return sys_fsconfig_flag(fs, "volatile");
}

/* Before Linux 6.15 the layers of an overlay must be attached in the mount namespace of whoever
 * makes it. A child that shares our memory and descriptors, but no mounts, does it there; the
 * overlay keeps its own references, so nothing of the child's namespace has to stay. */
struct attached {
    int fs, lower, layer, scratch;
    uint32_t id;
    int r;
};

static int create_attached_main(void *arg)
{
    struct attached *a = arg;

    /* The place does not matter: the layers are named by descriptors. */
    if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
        sys_move_mount(a->lower, AT_FDCWD, "/usr") < 0 ||
        (a->layer >= 0 && sys_move_mount(a->layer, AT_FDCWD, "/usr") < 0) ||
        sys_move_mount(a->scratch, AT_FDCWD, "/usr") < 0 || create_as(a->fs, a->id) < 0)
        a->r = -errno;
    return 0;
}

static int create_attached(struct attached *a)
{
    AUTO(free_p) char *stack = xcalloc(1, CHILD_STACK);
    sigset_t all, old;
    pid_t pid;

    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    pid = clone(create_attached_main, stack + CHILD_STACK, CLONE_VM | CLONE_VFORK | CLONE_FILES, a);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    if (pid < 0)
        return -1;
    while (waitpid(pid, NULL, __WCLONE) < 0 && errno == EINTR)
        ;
    errno = -a->r;
    return a->r < 0 ? -1 : 0;
}

/* The lower layer of the slot cannot be attached twice, so this takes one of its own. */
static int create_root_attached(const struct layers_spec *spec, int layer, int scratch, int *ret_fs,
                                struct sg_error *e)
{
    AUTO(close_p) int fs = sys_fsopen("overlay"), lower = -1;
    int r = layers_open_lower(spec->template, spec->userns, &lower, e);

    if (r < 0)
        return r;
    struct attached a = {
        .fs = fs, .lower = lower, .layer = layer, .scratch = scratch, .id = spec->first_id};
    if (configure_root(fs, lower, layer, scratch) < 0 || create_attached(&a) < 0)
        return mount_error(fs, e, "make the root overlay");
    *ret_fs = steal_fd(&fs);
    return 0;
}

static int make_root(const struct layers_spec *spec, int scratch, int *ret, struct sg_error *e)
{
    static bool must_attach; /* found out by the first */
    AUTO(close_p) int fs = must_attach ? -1 : sys_fsopen("overlay"), layer = -1;
    int r = 0;

    if (spec->layer >= 0)
        r = layers_map_dir(spec->layer, "a snapshot", spec->userns, &layer, e);
    if (r < 0)
        return r;
    if (must_attach || configure_root(fs, spec->lower, layer, scratch) < 0 ||
        create_as(fs, spec->first_id) < 0) {
        if (!must_attach && errno != EINVAL)
            return mount_error(fs, e, "make the root overlay");
        close_p(&fs);
        fs = -1;
        r = create_root_attached(spec, layer, scratch, &fs, e);
        if (r < 0)
            return r;
        must_attach = true;
    }
    *ret = sys_fsmount(fs, spec->allow_suid ? MOUNT_ATTR_NODEV : UPPER_FLAGS);
    return *ret < 0 ? err_errno(e, "mount the root overlay") : 0;
}

/* The host's /usr below an empty layer (an overlay wants two). It has no upper layer, so nothing in
 * it can ever be written, and its ids are not mapped, so it all belongs to nobody. That it is an
 * overlay gives the sandbox inodes of its own: watches and locks on them meet nobody else's. */
static int make_usr(const struct layers_spec *spec, int *ret, struct sg_error *e)
{
    AUTO(close_p) int fs = sys_fsopen("overlay");
    char lower[80];

    snprintf(lower, sizeof lower, "/proc/self/fd/%d/" TEMPLATE_EMPTY ":/proc/self/fd/%d",
             spec->template->dir, spec->template->host_usr);
    if (fs < 0 || sys_fsconfig_string(fs, "lowerdir", lower) < 0 ||
        sys_fsconfig_string(fs, "redirect_dir", "nofollow") < 0 ||
        sys_fsconfig_string(fs, "metacopy", "off") < 0 ||
        sys_fsconfig_string(fs, "xino", "off") < 0 || sys_fsconfig_create(fs) < 0)
        return mount_error(fs, e, "make the overlay of /usr");
    *ret = sys_fsmount(fs, LOWER_FLAGS);
    return *ret < 0 ? err_errno(e, "mount the overlay of /usr") : 0;
}

int layers_begin(const struct layers_spec *spec, struct layers *l, struct sg_error *e)
{
    int r = make_scratch(spec, &l->scratch, e);

    return r < 0 ? r : make_usr(spec, &l->usr, e);
}

int layers_finish(const struct layers_spec *spec, struct layers *l, struct sg_error *e)
{
    int r = map_scratch(spec, l->scratch, e);

    return r < 0 ? r : make_root(spec, l->scratch, &l->root, e);
}

int layers_open_upper(const struct layers *l, int *ret, struct sg_error *e)
{
    int fd = openat(l->scratch, scratch_dirs[0], O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

    if (fd < 0)
        return err_errno(e, "open the upper layer");
    *ret = fd;
    return 0;
}

void layers_close(struct layers *l)
{
    close_p(&l->root);
    close_p(&l->usr);
    close_p(&l->scratch);
}
