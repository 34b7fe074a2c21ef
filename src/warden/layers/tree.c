#include "warden/layers/tree.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "lib/base/fd.h"

#define COPY_FILE_MAX (16u << 20)

static void closedir_p(DIR **d)
{
    if (*d)
        closedir(*d);
}

static bool is_dot(const char *name)
{
    return strcmp(name, ".") == 0 || strcmp(name, "..") == 0;
}

static int copy_file(const char *from, const struct stat *st, int to_dir, const char *to,
                     struct sg_error *e)
{
    AUTO(close_p) int in = -1, out = -1;
    AUTO(free_p) char *data = NULL;
    size_t len;
    int r;

    if (st->st_size > COPY_FILE_MAX)
        return 0;
    in = open(from, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (in < 0)
        return errno == EACCES ? 0 : err_errno(e, "open '%s'", from);
    r = fd_read_all(in, COPY_FILE_MAX, &data, &len);
    if (r < 0)
        return err_set(e, SG_ERR_INTERNAL, r, "read '%s': %s", from, strerror(-r));
    out = openat(to_dir, to, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, st->st_mode & 0755);
    if (out < 0)
        return err_errno(e, "make '%s'", to);
    r = fd_write_all(out, data, len);
    if (r < 0)
        return err_set(e, err_kind_of(-r), r, "write '%s': %s", to, strerror(-r));
    /* Keeps the time: Python compares a source's time with the one in its compiled form. */
    struct timespec times[2] = {st->st_mtim, st->st_mtim};
    return futimens(out, times) < 0 ? err_errno(e, "set the time of '%s'", to) : 0;
}

static int copy_link(const char *from, int to_dir, const char *to, struct sg_error *e)
{
    char target[PATH_MAX];
    ssize_t n = readlink(from, target, sizeof(target) - 1);

    if (n < 0)
        return err_errno(e, "read link '%s'", from);
    target[n] = '\0';
    if (symlinkat(target, to_dir, to) < 0 && errno != EEXIST)
        return err_errno(e, "make link '%s'", to);
    return 0;
}

static int copy_dir(const char *from, int to_dir, const char *to, struct sg_error *e)
{
    AUTO(closedir_p) DIR *d = opendir(from);
    struct dirent *entry;

    if (!d)
        return errno == EACCES ? 0 : err_errno(e, "open '%s'", from);
    if (mkdirat(to_dir, to, 0755) < 0 && errno != EEXIST)
        return err_errno(e, "make '%s'", to);
    while ((entry = readdir(d)) != NULL) {
        char a[PATH_MAX], b[PATH_MAX];
        int r;
        if (is_dot(entry->d_name))
            continue;
        if (snprintf(a, sizeof(a), "%s/%s", from, entry->d_name) >= (int)sizeof(a) ||
            snprintf(b, sizeof(b), "%s/%s", to, entry->d_name) >= (int)sizeof(b))
            return err_set(e, SG_ERR_INTERNAL, -ENAMETOOLONG, "path below '%s' is too long", from);
        r = tree_copy(a, to_dir, b, e);
        if (r < 0)
            return r;
    }
    return 0;
}

int tree_copy(const char *from, int to_dir, const char *to, struct sg_error *e)
{
    struct stat st;

    if (lstat(from, &st) < 0)
        return err_errno(e, "stat '%s'", from);
    if (S_ISREG(st.st_mode))
        return copy_file(from, &st, to_dir, to, e);
    if (S_ISLNK(st.st_mode))
        return copy_link(from, to_dir, to, e);
    if (S_ISDIR(st.st_mode))
        return copy_dir(from, to_dir, to, e);
    return 0;
}

int tree_remove(int dir, const char *name, struct sg_error *e)
{
    AUTO(closedir_p) DIR *d = NULL;
    struct dirent *entry;
    int fd;

    if (unlinkat(dir, name, 0) == 0 || errno == ENOENT)
        return 0;
    fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    d = fd < 0 ? NULL : fdopendir(fd);
    if (!d)
        return err_errno(e, "remove '%s'", name);
    while ((entry = readdir(d)) != NULL) {
        if (is_dot(entry->d_name))
            continue;
        int r = tree_remove(dirfd(d), entry->d_name, e);
        if (r < 0)
            return r;
    }
    if (unlinkat(dir, name, AT_REMOVEDIR) < 0 && errno != ENOENT)
        return err_errno(e, "remove '%s'", name);
    return 0;
}
