#include "cli/client/copy.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "cli/client/interrupt.h"
#include "cli/client/local_file.h"
#include "cli/client/place.h"

#define DEPTH_MAX 100

static int check_depth(unsigned depth, const char *path, struct sg_error *e)
{
    if (interrupt_signal())
        return err_set(e, SG_ERR_INTERNAL, -EINTR, "interrupted");
    if (depth > DEPTH_MAX)
        return err_set(e, SG_ERR_LIMIT, -ELOOP, "'%.128s' lies more than %d directories deep", path,
                       DEPTH_MAX);
    return 0;
}

static void close_dir_p(DIR **d)
{
    if (*d)
        closedir(*d);
}

/* ---- to the sandbox -------------------------------------------------------------------------- */

static int dir_up(struct copy *c, int dirfd, const char *to, unsigned depth, struct sg_error *e);

static int entry_up(struct copy *c, int dirfd, const char *name, const char *to, unsigned depth,
                    struct sg_error *e)
{
    AUTO(free_p) char *path = place_join(to, name);
    AUTO(close_p) int fd = -1;
    struct stat st;

    if (fstatat(dirfd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return err_errno(e, "cannot stat '%.128s'", name);
    if (!S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode)) {
        c->left_out++;
        return 0;
    }
    fd = openat(dirfd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &st) < 0)
        return err_errno(e, "cannot open '%.128s'", name);
    if (S_ISDIR(st.st_mode))
        return dir_up(c, fd, path, depth + 1, e);
    c->progress.files++;
    return err_wrap(e, remote_upload(&c->remote, path, fd, (uint64_t)st.st_size, e), "'%.128s'",
                    name);
}

static int dir_up(struct copy *c, int dirfd, const char *to, unsigned depth, struct sg_error *e)
{
    int fd = openat(dirfd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    AUTO(close_dir_p) DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;
    struct dirent *entry;
    int r = check_depth(depth, to, e);

    if (r == 0)
        r = remote_make_dir(&c->remote, to, e);
    if (r < 0)
        return r;
    if (!dir)
        return err_errno(e, "cannot read the directory for '%.128s'", to);
    while (r == 0 && (entry = readdir(dir)))
        if (place_is_name(entry->d_name))
            r = entry_up(c, dirfd, entry->d_name, to, depth, e);
    return r;
}

int copy_tree_up(struct copy *c, int dirfd, const char *to, struct sg_error *e)
{
    return dir_up(c, dirfd, to, 0, e);
}

/* ---- from the sandbox ------------------------------------------------------------------------ */

int copy_file_down(struct copy *c, const char *from, int dirfd, const char *name, unsigned mode,
                   bool follow, struct sg_error *e)
{
    struct local_file file;
    int r = local_file_open(&file, dirfd, name, follow, e);

    if (r < 0)
        return r;
    r = remote_download(&c->remote, from, file.fd, e);
    if (r == 0)
        r = local_file_keep(&file, mode, e);
    local_file_done(&file);
    return r;
}

struct dir_down {
    struct copy *copy;
    const char *from;
    int dirfd;
    unsigned depth;
};

static int list_down(struct dir_down *d, struct sg_error *e);

static int subdir_down(const struct dir_down *d, const char *name, const char *from,
                       struct sg_error *e)
{
    AUTO(close_p) int fd = -1;

    if (mkdirat(d->dirfd, name, 0777) < 0 && errno != EEXIST)
        return err_errno(e, "cannot make the directory '%.128s'", name);
    fd = openat(d->dirfd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return err_errno(e, "cannot open the directory '%.128s'", name);
    struct dir_down below = {d->copy, from, fd, d->depth + 1};
    return list_down(&below, e);
}

static int entry_down(void *arg, const struct remote_entry *entry, struct sg_error *e)
{
    const struct dir_down *d = arg;
    AUTO(free_p) char *from = place_join(d->from, entry->name);

    if (!place_is_name(entry->name))
        return err_set(e, SG_ERR_DENIED, -EPERM,
                       "'%.128s' has an entry with an invalid name: copying stops", d->from);
    if (entry->is_link || entry->type == REMOTE_OTHER) {
        d->copy->left_out++;
        return 0;
    }
    if (entry->type == REMOTE_DIR)
        return subdir_down(d, entry->name, from, e);
    d->copy->progress.files++;
    return copy_file_down(d->copy, from, d->dirfd, entry->name, entry->mode, false, e);
}

static int list_down(struct dir_down *d, struct sg_error *e)
{
    int r = check_depth(d->depth, d->from, e);

    return r < 0 ? r : remote_list(&d->copy->remote, d->from, entry_down, d, e);
}

int copy_tree_down(struct copy *c, const char *from, int dirfd, struct sg_error *e)
{
    struct dir_down top = {c, from, dirfd, 0};

    return list_down(&top, e);
}
