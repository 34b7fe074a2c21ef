#include "inside/broker/look.h"

#include <fcntl.h>
#include <linux/kcmp.h>
#include <stdio.h>
#include <string.h>
#include <sys/fsuid.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "lib/base/clock.h"
#include "lib/base/fd.h"
#include "lib/base/sys.h"

#ifndef SYS_faccessat2
#define SYS_faccessat2 439
#endif

static const char *const shown_at[] = {"usr/local", "dev/shm"};
static const char *const devices[] = {"/dev/null", "/dev/zero", "/dev/full", "/dev/random",
                                      "/dev/urandom"};

#define ABOVE_OURS 2 /* filters of a program on top of the broker's: the zygote's and its own */

static unsigned own_filters(void)
{
    AUTO(close_p) int dir = open("/proc/self", O_PATH | O_DIRECTORY | O_CLOEXEC);
    struct procfs_status own;

    return dir >= 0 && procfs_status(dir, &own) == 0 ? own.filters : 0;
}

int view_learn(int root, struct view *ret)
{
    struct procfs_process at;
    int r;

    *ret = (struct view){
        .root = root, .filters = own_filters() + ABOVE_OURS, .deadline_ns = UINT64_MAX};
    r = procfs_process(root, "", AT_EMPTY_PATH, &ret->at);
    if (r == 0 && ret->at.mount == 0)
        r = -ENOSYS;
    ret->mounts[0] = ret->at.mount;
    for (size_t i = 0; i < ARRAY_SIZE(shown_at) && r == 0; i++)
        if (procfs_process(root, shown_at[i], AT_SYMLINK_NOFOLLOW, &at) == 0)
            ret->mounts[i + 1] = at.mount;
    return r;
}

static bool is_own(const struct view *s, const struct procfs_process *at)
{
    for (size_t i = 0; i < ARRAY_SIZE(s->mounts); i++)
        if (at->mount == s->mounts[i])
            return true;
    return false;
}

/* ---- for every process ----------------------------------------------------------------------- */

/* A look at one process. */
struct look {
    const struct view *view;
    const struct inspected *who;
    struct findings *f;
    struct look_shared *shared; /* set for a kernel only */
};

static bool is_late(const struct look *l)
{
    return clock_ns() > l->view->deadline_ns;
}

static void in_the_way(const struct look *l, const char *what, const char *holds,
                       const char *remedy)
{
    findings_in_the_way(l->f, l->who, what, holds, remedy);
}

/* Whether the process could open the path again and get the same file. The path comes from Linux,
 * so there is no link in it unless somebody has put one there since. */
static bool found_again(const struct look *l, const char *path, int flags,
                        const struct procfs_process *at)
{
    struct open_how how = {.flags = (uint64_t)(flags & ~(O_CREAT | O_EXCL | O_TRUNC)) | O_CLOEXEC |
                                    O_NONBLOCK | O_NOCTTY,
                           .resolve = RESOLVE_IN_ROOT | RESOLVE_NO_SYMLINKS};
    struct procfs_process there;
    bool same;
    int fd;

    if (path[0] != '/')
        return false;
    if (flags & O_PATH)
        how.flags = (uint64_t)(flags & (O_PATH | O_DIRECTORY)) | O_CLOEXEC | O_NOFOLLOW;
    setfsgid(l->who->status.gid);
    setfsuid(l->who->status.uid);
    fd = sys_openat2(l->view->root, path, &how);
    same = fd >= 0 && procfs_process(fd, "", AT_EMPTY_PATH, &there) == 0 && procfs_same(&there, at);
    if (same && S_ISDIR(at->mode))
        same = syscall(SYS_faccessat2, fd, "", X_OK, AT_EMPTY_PATH | AT_EACCESS) == 0;
    setfsuid(0);
    setfsgid(0);
    /* The change of ids made us undumpable, and that would give the /proc entries of the next
     * zygote to the host's root. */
    prctl(PR_SET_DUMPABLE, 1, 0, 0, 0);
    close_p(&fd);
    return same;
}

static void look_at_itself(const struct look *l)
{
    struct procfs_process root;

    if (procfs_process(l->who->dir, "root", 0, &root) < 0 || !procfs_same(&root, &l->view->at))
        in_the_way(l, "process", "a root directory of its own", "end the process");
    if (l->who->status.filters > l->view->filters)
        in_the_way(l, "process", "a system-call filter of its own", "end the process");
}

/* Whether the file is deleted but still in use: Linux does not make a file system read-only that
 * has such a file. An overlay counts the names of the file in the layer below, which stay when the
 * file is deleted, so the count is not enough; the target of the descriptor's link tells too. */
static bool is_deleted(const struct procfs_process *at, const char *path)
{
    static const char mark[] = " (deleted)";
    size_t len = strlen(path), n = sizeof(mark) - 1;

    return at->nlink == 0 || (len > n && strcmp(path + len - n, mark) == 0);
}

static char *look_at_directory(const struct look *l)
{
    int dir = l->who->dir;
    char path[PROCFS_PATH_MAX];
    struct procfs_process at;

    if (procfs_process(dir, "cwd", 0, &at) < 0 || procfs_link(dir, "cwd", path) < 0)
        return NULL;
    if (is_own(l->view, &at) && is_deleted(&at, path))
        in_the_way(l, "file", path, "change to a directory that exists");
    return found_again(l, path, O_PATH | O_DIRECTORY, &at) ? xstrdup(path) : NULL;
}

/* An open descriptor of the process. */
struct opening {
    int fd;
    struct procfs_process at;
    struct procfs_fd info;
    char path[PROCFS_PATH_MAX]; /* "": too long, or none */
};

static int open_find(const struct inspected *who, struct opening *ret)
{
    char which[24];

    snprintf(which, sizeof(which), "fd/%d", ret->fd);
    ret->path[0] = '\0';
    return procfs_process(who->dir, which, 0, &ret->at);
}

static int open_look(const struct inspected *who, struct opening *ret)
{
    char which[24];

    snprintf(which, sizeof(which), "fd/%d", ret->fd);
    if (procfs_link(who->dir, which, ret->path) < 0)
        ret->path[0] = '\0';
    return procfs_fd(who->dir, ret->fd, &ret->info);
}

static bool is_writable(const struct opening *o)
{
    return (o->info.flags & O_ACCMODE) != O_RDONLY;
}

static bool is_stored(const struct opening *o)
{
    return S_ISREG(o->at.mode) || S_ISDIR(o->at.mode);
}

static int look_at_files(const struct look *l)
{
    AUTO(numbers_done) struct numbers fds = {0};
    int r = procfs_fds(l->who->dir, &fds);
    struct opening o;

    for (size_t i = 0; i < fds.n && r == 0; i++) {
        o.fd = fds.v[i];
        r = is_late(l) ? -ETIMEDOUT : open_find(l->who, &o);
        if (r < 0 || !is_stored(&o) || !is_own(l->view, &o.at))
            continue;
        r = open_look(l->who, &o);
        if (r < 0)
            continue;
        if (o.info.locked)
            in_the_way(l, "lock", o.path, "release the lock, or end the process");
        else if (S_ISDIR(o.at.mode))
            in_the_way(l, "file", o.path, "close the directory, or end the process");
        else if (is_writable(&o) || is_deleted(&o.at, o.path))
            in_the_way(l, "file", o.path, "close the file, or end the process");
    }
    return r;
}

/* Whether the mapping is of a file that can be reached by its name, not of memory. */
static bool is_file(const struct mapping *m)
{
    return !m->memory && !m->anonymous && m->name[0] == '/';
}

static int other_maps(const struct mapping *m, void *arg)
{
    const struct look *l = arg;

    if (is_late(l))
        return -ETIMEDOUT;
    if (m->shared && m->writable && is_file(m))
        in_the_way(l, "mapping", m->name, "unmap the file, or end the process");
    return 0;
}

int look_at_other(const struct view *s, const struct inspected *who, struct findings *f,
                  char **ret_cwd)
{
    struct look l = {.view = s, .who = who, .f = f};
    int r;

    look_at_itself(&l);
    r = look_at_files(&l);
    if (r == 0)
        r = mapping_each(who->dir, other_maps, &l);
    if (r == 0)
        *ret_cwd = look_at_directory(&l);
    return r;
}

/* ---- kernels --------------------------------------------------------------------------------- */

static int kernel_maps(const struct mapping *m, void *arg)
{
    const struct look *l = arg;
    struct look_shared *s = l->shared;

    if (is_late(l))
        return -ETIMEDOUT;
    if (m->memory) {
        in_the_way(l, "mapping", m->name,
                   "unmap it: a process that has it open could write to it in a copy");
    } else if (m->writable && !m->anonymous) {
        in_the_way(l, "mapping", m->name,
                   "flush and close it, or map it private (copy on write) or for reading");
    } else if (m->anonymous && s->n < LOOK_SHARED_MAX) {
        s->all[s->n].start = m->start;
        s->all[s->n].len = m->end - m->start;
        s->all[s->n++].prot = m->prot;
        s->bytes += m->end - m->start;
    } else if (m->anonymous) {
        s->bytes = UINT64_MAX;
        return 1;
    }
    return s->bytes > LOOK_SHARED_BYTES_MAX;
}

static int look_at_memory(struct look *l)
{
    int r = mapping_each(l->who->dir, kernel_maps, l);

    if (r == 1)
        in_the_way(l, "memory", "more than 256 MiB of shared memory, or too many pieces",
                   "free shared memory (mmap of -1, multiprocessing)");
    return r < 0 ? r : 0;
}

static bool same_opening(const struct inspected *who, int a, int b)
{
    return syscall(SYS_kcmp, who->pid, who->pid, KCMP_FILE, a, b) == 0;
}

/* Which of descriptors 0 to 3 this one is a duplicate of, or -1. */
static int same_as_first(const struct inspected *who, const struct procfs_process *first,
                         const struct opening *o)
{
    for (int fd = 0; fd < OPEN_FILES_FIRST; fd++)
        if (procfs_same(&first[fd], &o->at) && same_opening(who, fd, o->fd))
            return fd;
    return -1;
}

static int same_as_file(const struct inspected *who, const struct open_files *l,
                        const struct opening *o)
{
    for (size_t i = 0; i < l->n; i++) {
        const struct open_file *item = &l->items[i];
        if (item->same < 0 && ((item->flags ^ o->info.flags) & ~O_CLOEXEC) == 0 &&
            strcmp(item->path, o->path) == 0 && same_opening(who, item->fd, o->fd))
            return item->fd;
    }
    return -1;
}

static bool is_plain_device(const struct opening *o)
{
    for (size_t i = 0; i < ARRAY_SIZE(devices); i++)
        if (strcmp(o->path, devices[i]) == 0)
            return S_ISCHR(o->at.mode);
    return false;
}

static void drop(struct findings *f, const struct opening *o)
{
    const char *name = o->path, *kind = NULL;
    char text[PROCFS_PATH_MAX + 32];

    if (S_ISSOCK(o->at.mode))
        kind = "socket";
    else if (S_ISFIFO(o->at.mode))
        kind = "pipe";
    else if (strncmp(name, "anon_inode:", 11) == 0)
        kind = name + 11;
    else if (strncmp(name, "/memfd:", 7) == 0)
        kind = "memory file";
    snprintf(text, sizeof(text), "%s%s",
             kind                  ? kind
             : S_ISCHR(o->at.mode) ? "device "
             : o->at.nlink == 0    ? "deleted file "
                                   : "file ",
             kind ? "" : name);
    findings_dropped(f, o->fd, text);
}

static void pack(const struct look *l, struct open_files *files, const struct opening *o)
{
    bool own = is_stored(o) && is_own(l->view, &o->at);
    /* Files of /sys belong to one sandbox, or make the open wait for its agent. */
    bool in_proc = strncmp(o->path, "/proc/", 6) == 0 || strncmp(o->path, "/sys/", 5) == 0;
    struct open_file item = {.fd = o->fd, .same = -1, .flags = o->info.flags};

    if (S_ISREG(o->at.mode))
        item.offset = o->info.offset;
    if (own && o->info.locked) {
        in_the_way(l, "lock", o->path, "release the lock, or close the file");
    } else if ((is_stored(o) || is_plain_device(o)) && !in_proc && o->path[0] &&
               found_again(l, o->path, o->info.flags, &o->at)) {
        item.path = xstrdup(o->path);
        if (open_files_add(files, &item)) {
            findings_file(l->f, o->fd, o->path, item.offset);
            if (own && is_writable(o))
                findings_written(l->f, o->path);
            return;
        }
        free(item.path);
        if (!files->full)
            in_the_way(l, "file", o->path, "close files: at most 512 can be copied");
        files->full = true;
    } else if (own && (is_writable(o) || is_deleted(&o->at, o->path))) {
        in_the_way(l, "file", o->path, "close it: the copy cannot open it again by its name");
    } else {
        drop(l->f, o);
    }
}

/* If a cell has replaced one of the kernel's own descriptors 0 to 3, a copy gets the usual one
 * again. */
static int look_at_first(const struct look *l, struct opening *o)
{
    int r = 0;

    if (!is_stored(o) || !is_own(l->view, &o->at))
        return 0;
    r = open_look(l->who, o);
    if (r == 0 && is_writable(o))
        in_the_way(l, "file", o->path, "restore standard input and output");
    return r;
}

static int look_at_further(const struct look *l, const struct procfs_process *first,
                           struct opening *o, struct open_files *files)
{
    struct open_file same = {.fd = o->fd, .same = same_as_first(l->who, first, o)};
    int r = same.same < 0 ? open_look(l->who, o) : procfs_fd(l->who->dir, o->fd, &o->info);

    if (r < 0)
        return r;
    same.flags = o->info.flags;
    if (same.same < 0)
        same.same = same_as_file(l->who, files, o);
    if (same.same < 0 || !open_files_add(files, &same))
        pack(l, files, o);
    return 0;
}

static int look_at_openings(const struct look *l, struct open_files *files)
{
    struct procfs_process first[OPEN_FILES_FIRST] = {{0}};
    AUTO(numbers_done) struct numbers fds = {0};
    int r = procfs_fds(l->who->dir, &fds);
    struct opening o;

    for (size_t i = 0; i < fds.n && r == 0; i++) {
        o.fd = fds.v[i];
        files->free_fd += o.fd == files->free_fd;
        r = is_late(l) ? -ETIMEDOUT : open_find(l->who, &o);
        if (r < 0)
            return r;
        if (o.fd >= OPEN_FILES_FIRST) {
            r = look_at_further(l, first, &o, files);
            continue;
        }
        first[o.fd] = o.at;
        r = look_at_first(l, &o);
    }
    return r;
}

int look_at_kernel(const struct view *s, const struct inspected *who, struct findings *f,
                   struct open_files *ret, struct look_shared *ret_shared)
{
    struct look l = {.view = s, .who = who, .f = f, .shared = ret_shared};
    int r;

    findings_kernel_begin(f);
    look_at_itself(&l);
    r = look_at_openings(&l, ret);
    if (r == 0)
        r = look_at_memory(&l);
    if (r == 0 && syscall(SYS_prlimit64, who->pid, RLIMIT_NOFILE, NULL, &ret->files) < 0)
        r = -errno;
    if (r < 0)
        return r;
    ret->cwd = look_at_directory(&l);
    findings_kernel_end(f, who->inside);
    return 0;
}
