#include "warden/layers/mounts.h"

#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <linux/securebits.h>

#include "lib/base/sys.h"
#include "warden/host/child.h"
#include "warden/host/idmap.h"
#include "warden/host/slots.h"
#include "warden/layers/attach.h"

#define UPPER_FLAGS (MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV)
#define LOWER_FLAGS (MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_RDONLY)

/* Adds what the kernel says beyond errno when it refuses a mount. */
int mounts_mount_error(int fs, struct sg_error *e, const char *what)
{
    char why[160];
    int saved = errno;
    ssize_t n = fs < 0 ? -1 : read(fs, why, sizeof(why) - 1);

    errno = saved;
    if (n <= 0)
        return err_errno(e, "%s", what);
    why[n] = '\0';
    why[strcspn(why, "\n")] = '\0';
    return err_errno(e, "%s (%s)", what, n > 2 ? why + 2 : why); /* skips "e " in "e overlay: " */
}

static int idmap(int mount_fd, int userns, unsigned set)
{
    struct mount_attr a = {.attr_set = MOUNT_ATTR_IDMAP | set, .userns_fd = (uint64_t)userns};

    return sys_mount_setattr(mount_fd, 0, &a) < 0 ? -errno : 0;
}

/* The error may be the limit of mount namespaces: a detached clone counts as one. */
static int clone_error(const char *what, struct sg_error *e)
{
    return errno != ENOSPC ? err_errno(e, "clone '%s'", what)
                           : err_set(e, SG_ERR_LIMIT, -EAGAIN,
                                     "the kernel allows no more mount namespaces: raise the sysctl "
                                     "user.max_mnt_namespaces");
}

/* On a scratch that cannot be mapped, files have host ids, and no other sandbox can use its
 * layers. */
static int give_upper(const struct mounts_spec *spec, struct sg_error *e)
{
    char work[LAYER_NAME];

    scratch_work_name(spec->upper, work);
    if (fchownat(spec->scratch->mount, spec->upper, spec->first_id, spec->first_id, 0) < 0 ||
        fchownat(spec->scratch->mount, work, spec->first_id, spec->first_id, 0) < 0)
        return err_errno(e, "give the scratch file system to the sandbox");
    spec->scratch->first_id = spec->first_id;
    return 0;
}

/* Opens the scratch for the overlay. The mount itself is mapped if nobody needs it unmapped;
 * otherwise a clone of it, if that can be made (attach.h). */
static int open_scratch(const struct mounts_spec *spec, bool *ret_own)
{
    int fd = -1;

    if (spec->keep || attach_active()) {
        fd = sys_open_tree(spec->scratch->mount, "",
                           OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_EMPTY_PATH);
        if (fd < 0 && errno != EINVAL)
            return -1;
    }
    *ret_own = fd >= 0 || !spec->keep;
    return fd >= 0 ? fd : fcntl(spec->scratch->mount, F_DUPFD_CLOEXEC, 0);
}

/* Maps the ids of a tmpfs. It has id maps since Linux 6.3. In the scratch store files have the ids of the
 * slot. */
static int map_scratch(const struct mounts_spec *spec, int *ret, struct sg_error *e)
{
    bool own = false;
    AUTO(close_p) int fd = -1;
    int r;

    if (spec->scratch->place) {
        *ret = attach_copy(spec->scratch->mount);
        return *ret < 0 ? err_errno(e, "open the scratch file system") : 0;
    }
    fd = open_scratch(spec, &own);
    if (fd < 0)
        return clone_error("the scratch file system", e);
    r = own ? idmap(fd, spec->userns, 0) : -EINVAL;
    spec->scratch->shares = r == 0;
    if (r == -EINVAL)
        r = give_upper(spec, e);
    else if (r < 0)
        r = err_set(e, SG_ERR_INTERNAL, r, "map the ids of the scratch file system: %s",
                    strerror(-r));
    if (r == 0)
        *ret = steal_fd(&fd);
    return r;
}

static int map_dir(int dir, const char *name, int userns, unsigned flags, int *ret,
                   struct sg_error *e)
{
    AUTO(close_p)
    int fd = sys_open_tree(dir, "", OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_EMPTY_PATH);
    int r;

    if (fd < 0)
        return clone_error(name, e);
    r = idmap(fd, userns, flags);
    if (r < 0)
        return err_set(e, r == -EINVAL ? SG_ERR_UNSUPPORTED : SG_ERR_INTERNAL, r,
                       "map the ids of '%s': %s; its file system must support id-mapped mounts",
                       name, strerror(-r));
    *ret = steal_fd(&fd);
    return 0;
}

int mounts_map_dir(int dir, const char *name, int userns, int *ret, struct sg_error *e)
{
    return map_dir(dir, name, userns, LOWER_FLAGS, ret, e);
}

int mounts_map_writable(int dir, const char *name, int userns, int *ret, struct sg_error *e)
{
    return map_dir(dir, name, userns, UPPER_FLAGS, ret, e);
}

void lowers_close(struct lowers *l)
{
    close_p(&l->template);
    close_p(&l->world);
}

int mounts_open_lowers(const struct template *t, int world, int userns, struct lowers *ret,
                       struct sg_error *e)
{
    struct lowers l = LOWERS_NONE;
    int r = mounts_map_dir(world < 0 ? t->dir : t->fixtures, TEMPLATE_DIR, userns, &l.template, e);

    if (r == 0 && world >= 0)
        r = mounts_map_dir(world, "a world", userns, &l.world, e);
    if (r < 0)
        lowers_close(&l);
    else
        *ret = l;
    return r;
}

static int open_dir(int at, const char *name)
{
    return openat(at, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

/* Opens the world's own /usr, to lie over that of the root. A world without /usr/local has no place
 * for the root's, and gets no cover. */
static int open_cover(const struct mounts_spec *spec, int *ret, struct sg_error *e)
{
    AUTO(close_p) int usr = open_dir(spec->world, "usr"), local = open_dir(usr, "local");

    return local < 0 ? 0 : mounts_map_dir(usr, "/usr of a world", spec->userns, ret, e);
}

/* An overlay acts with the file-system ids and capabilities of the process that mounts it. Host
 * root has no id on the mapped layers, so this process takes the sandbox's root id, and keeps its
 * capabilities. */
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

/* The layers of a root overlay, as descriptors; -1: none. */
struct parts {
    struct lowers lowers; /* the slot's */
    int layer, scratch;
    int maps[STACK_MAX];        /* clones of the layers' scratches, one each */
    int layer_stack[STACK_MAX]; /* oldest first */
    size_t n_maps, n_layer_stack;
    bool here; /* this process is in /proc/self/fd */
    struct late *late;
};

#define PARTS_NONE                                        \
    {                                                     \
        .lowers = LOWERS_NONE, .layer = -1, .scratch = -1 \
    }

bool late_close(struct late *l)
{
    if (l->n == 0)
        return false;
    close(l->fds[--l->n]);
    return true;
}

void late_add(struct late *l, int *fd)
{
    if (l && *fd >= 0 && l->n < LATE_MAX)
        l->fds[l->n++] = steal_fd(fd);
    close_p(fd);
}

static void parts_close(struct parts *p)
{
    for (size_t i = 0; i < p->n_layer_stack; i++)
        close_p(&p->layer_stack[i]);
    late_add(p->late, &p->layer);
    late_add(p->late, &p->scratch);
    for (size_t i = 0; i < p->n_maps; i++)
        late_add(p->late, &p->maps[i]);
}

static int add_lower(int fs, int fd)
{
    char path[32];

    snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    return sys_fsconfig_string(fs, "lowerdir+", path);
}

/* All in one string, which kernels before 6.5 need. It has 255 bytes at most: so the names are those in
 * /proc/self/fd, where this process must be. */
static int configure_lower_here(int fs, const struct parts *p)
{
    const int lowest[] = {p->layer, p->lowers.template, p->lowers.world};
    char lower[STACK_MAX * 12];
    int n = 0;

    for (size_t i = p->n_layer_stack; i > 0; i--)
        n += snprintf(lower + n, sizeof(lower) - (size_t)n, ":%d", p->layer_stack[i - 1]);
    for (size_t i = 0; i < ARRAY_SIZE(lowest); i++)
        if (lowest[i] >= 0)
            n += snprintf(lower + n, sizeof(lower) - (size_t)n, ":%d", lowest[i]);
    return sys_fsconfig_string(fs, "lowerdir", lower + 1);
}

static int configure_lower(int fs, const struct parts *p)
{
    for (size_t i = p->n_layer_stack; i > 0; i--)
        if (add_lower(fs, p->layer_stack[i - 1]) < 0)
            return -1;
    if (p->layer >= 0 && add_lower(fs, p->layer) < 0)
        return -1;
    if (add_lower(fs, p->lowers.template) < 0)
        return -1;
    return p->lowers.world < 0 ? 0 : add_lower(fs, p->lowers.world);
}

static int configure_root(int fs, const struct parts *p, const char *upper_name, bool user_marks)
{
    int (*lower)(int, const struct parts *) = p->here ? configure_lower_here : configure_lower;
    char upper[48 + LAYER_NAME], work[48 + LAYER_NAME], work_name[LAYER_NAME];

    scratch_work_name(upper_name, work_name);
    snprintf(upper, sizeof(upper), "/proc/self/fd/%d/%s", p->scratch, upper_name);
    snprintf(work, sizeof(work), "/proc/self/fd/%d/%s", p->scratch, work_name);
    if (fs < 0 || lower(fs, p) < 0 || sys_fsconfig_string(fs, "upperdir", upper) < 0 ||
        sys_fsconfig_string(fs, "workdir", work) < 0 ||
        sys_fsconfig_string(fs, "redirect_dir", "nofollow") < 0 ||
        sys_fsconfig_string(fs, "metacopy", "off") < 0 ||
        sys_fsconfig_string(fs, "index", "off") < 0 || sys_fsconfig_string(fs, "xino", "off") < 0)
        return -1;
    if (user_marks && sys_fsconfig_flag(fs, "userxattr") < 0)
        return -1;
    return sys_fsconfig_flag(fs, "volatile");
}

/* Before Linux 6.15 the layers of an overlay must be attached in the mount namespace of the process
 * that makes it. So a child does it, in a mount namespace of its own; it shares the parent's memory
 * and descriptors. The overlay keeps its own references, so nothing of the child's namespace has to
 * stay: what was attached there is of no more use. */
struct attached {
    const struct mounts_spec *spec;
    const struct parts *parts;
    int fs, r;
};

static int attach_here(int mount)
{
    /* Any place will do: the overlay gets its layers by descriptor. */
    return mount < 0 ? 0 : sys_move_mount(mount, AT_FDCWD, "/usr");
}

static int attach_parts(const struct parts *p)
{
    if (attach_here(p->lowers.template) < 0 || attach_here(p->lowers.world) < 0 ||
        attach_here(p->layer) < 0 || attach_here(p->scratch) < 0)
        return -1;
    for (size_t i = 0; i < p->n_maps; i++)
        if (attach_here(p->maps[i]) < 0)
            return -1;
    return 0;
}

static int create_attached_main(void *arg)
{
    struct attached *a = arg;

    if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
        attach_parts(a->parts) < 0 || chdir("/proc/self/fd") < 0 ||
        configure_root(a->fs, a->parts, a->spec->upper, a->spec->user_marks) < 0 ||
        create_as(a->fs, a->spec->first_id) < 0)
        a->r = -errno;
    return 0;
}

/* The slot's lower layers cannot be attached twice, so this makes some of its own. */
static int create_root_attached(const struct mounts_spec *spec, const struct parts *p, int *ret_fs,
                                struct sg_error *e)
{
    AUTO(close_p) int fs = sys_fsopen("overlay");
    AUTO(lowers_close) struct lowers lowers = LOWERS_NONE;
    struct parts own = *p;
    struct attached a = {.spec = spec, .parts = &own, .fs = fs};
    int r = mounts_open_lowers(spec->template, spec->world, spec->userns, &lowers, e), pid;

    if (r < 0)
        return r;
    own.lowers = lowers;
    own.here = true;
    pid = child_clone(create_attached_main, &a, CLONE_FILES, NULL);
    if (pid < 0)
        return err_code(e, pid, "start a process that makes the root overlay");
    while (waitpid(pid, NULL, __WCLONE) < 0 && errno == EINTR)
        ;
    errno = -a.r;
    if (a.r < 0)
        return mounts_mount_error(fs, e, "make the root overlay");
    *ret_fs = steal_fd(&fs);
    return 0;
}

/* Opens a scratch with its ids mapped to the sandbox's. One that has these already is as it is. */
static int map_other(const struct mounts_spec *spec, const struct scratch *s, int *ret,
                     struct sg_error *e)
{
    AUTO(close_p) int userns = -1;
    int r;

    if (s->first_id == 0)
        return mounts_map_dir(s->mount, "a scratch file system", spec->userns, ret, e);
    if (s->first_id == spec->first_id) {
        *ret = attach_copy(s->mount);
        return *ret < 0 ? err_errno(e, "open a scratch file system") : 0;
    }
    r = idmap_open_range(s->first_id, spec->first_id, SLOT_IDS, &userns, e);
    return r < 0 ? r : mounts_map_dir(s->mount, "a scratch file system", userns, ret, e);
}

/* All layers of one scratch are reached through one clone of it. */
static int map_layer_stack(const struct mounts_spec *spec, struct parts *p, struct sg_error *e)
{
    const struct scratch *from[STACK_MAX];

    for (size_t i = 0; i < stack_depth(spec->stack); i++) {
        const struct layer *t = spec->stack->v[i];
        size_t m = 0;

        while (m < p->n_maps && from[m] != t->scratch)
            m++;
        if (m == p->n_maps) {
            int r = map_other(spec, t->scratch, &p->maps[m], e);
            if (r < 0)
                return r;
            from[p->n_maps++] = t->scratch;
        }
        p->layer_stack[i] =
            openat(p->maps[m], t->dir, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (p->layer_stack[i] < 0)
            return err_errno(e, "open a frozen layer");
        p->n_layer_stack++;
    }
    return 0;
}

static int create_root(const struct mounts_spec *spec, const struct parts *p, int *ret_fs,
                       struct sg_error *e)
{
    static bool must_attach; /* set when the first root was refused */
    AUTO(close_p) int fs = -1;
    int r;

    if (must_attach || attach_active())
        return create_root_attached(spec, p, ret_fs, e);
    fs = sys_fsopen("overlay");
    if (configure_root(fs, p, spec->upper, spec->user_marks) == 0 &&
        create_as(fs, spec->first_id) == 0) {
        *ret_fs = steal_fd(&fs);
        return 0;
    }
    if (errno != EINVAL)
        return mounts_mount_error(fs, e, "make the root overlay");
    r = create_root_attached(spec, p, ret_fs, e);
    must_attach = r == 0;
    return r;
}

static int make_root(const struct mounts_spec *spec, int *ret, struct sg_error *e)
{
    AUTO(close_p) int fs = -1;
    AUTO(parts_close) struct parts p = PARTS_NONE;
    int r = map_scratch(spec, &p.scratch, e);

    p.lowers = *spec->lowers;
    p.late = spec->late;
    if (r == 0 && spec->layer >= 0)
        r = mounts_map_dir(spec->layer, "a snapshot", spec->userns, &p.layer, e);
    if (r == 0)
        r = map_layer_stack(spec, &p, e);
    if (r == 0)
        r = create_root(spec, &p, &fs, e);
    if (r < 0)
        return r;
    *ret = sys_fsmount(fs, spec->allow_suid ? MOUNT_ATTR_NODEV : UPPER_FLAGS);
    return *ret < 0 ? err_errno(e, "mount the root overlay") : 0;
}

/* Makes /usr: an overlay of the host's /usr below an empty layer (an overlay wants two). It has no
 * upper layer, so nobody can ever write to it; its ids are not mapped, so all of it belongs to
 * nobody. Because it is an overlay, the sandbox gets inodes of its own: its watches and locks never
 * meet those of others. */
static int make_usr(const struct mounts_spec *spec, int *ret, struct sg_error *e)
{
    AUTO(close_p) int fs = sys_fsopen("overlay");
    char lower[80];

    snprintf(lower, sizeof(lower), "/proc/self/fd/%d/" TEMPLATE_EMPTY ":/proc/self/fd/%d",
             spec->template->dir, spec->template->host_usr);
    if (fs < 0 || sys_fsconfig_string(fs, "lowerdir", lower) < 0 ||
        sys_fsconfig_string(fs, "redirect_dir", "nofollow") < 0 ||
        sys_fsconfig_string(fs, "metacopy", "off") < 0 ||
        sys_fsconfig_string(fs, "xino", "off") < 0 || sys_fsconfig_create(fs) < 0)
        return mounts_mount_error(fs, e, "make the overlay of /usr");
    *ret = sys_fsmount(fs, LOWER_FLAGS);
    return *ret < 0 ? err_errno(e, "mount the overlay of /usr") : 0;
}

int mounts_begin(const struct mounts_spec *spec, struct layers *l, struct sg_error *e)
{
    int r = spec->share
                ? scratch_make_in(spec->share, spec->disk_bytes, spec->first_id, &l->scratch, e)
                : scratch_make(spec->disk_bytes, spec->disk_inodes, &l->scratch, e);

    if (r == 0)
        r = scratch_upper(l->scratch, NULL, l->upper, e);
    return r < 0 || spec->world >= 0 ? r : make_usr(spec, &l->usr, e);
}

int mounts_finish(const struct mounts_spec *spec, struct layers *l, struct sg_error *e)
{
    struct mounts_spec with = *spec;

    with.scratch = l->scratch;
    with.upper = l->upper;
    int r = make_root(&with, &l->root, e);

    return r < 0 || spec->world < 0 ? r : open_cover(spec, &l->usr, e);
}

int mounts_make_root(const struct mounts_spec *spec, int *ret, struct sg_error *e)
{
    return make_root(spec, ret, e);
}

void mounts_close(struct layers *l)
{
    close_p(&l->root);
    close_p(&l->usr);
    scratch_release(l->scratch);
}
