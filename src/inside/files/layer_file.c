#include "inside/files/layer_file.h"

#include <fcntl.h>
#include <string.h>
#include <sys/sendfile.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>

#define SEND_MAX     (1u << 30)
#define RENAME_FRESH 1u /* RENAME_NOREPLACE */

int layer_open_file(int dir, const char *name)
{
    return openat(dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
}

int layer_make_file(int dir, const char *name)
{
    return openat(dir, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
}

int layer_rename(int from, const char *name, int to, const char *new_name)
{
    return syscall(SYS_renameat2, from, name, to, new_name, RENAME_FRESH) < 0 ? -errno : 0;
}

static bool trusted_marks;

void layer_use_marks(bool trusted)
{
    trusted_marks = trusted;
}

const char *layer_mark_name(enum layer_mark m)
{
    static const char *const names[][2] = {
        [MARK_OPAQUE] = {"user.overlay.opaque", "trusted.overlay.opaque"},
        [MARK_ORIGIN] = {"user.overlay.origin", "trusted.overlay.origin"},
        [MARK_IMPURE] = {"user.overlay.impure", "trusted.overlay.impure"},
    };

    _Static_assert(ARRAY_SIZE(names) == MARK_MAX_, "every mark has its names");
    return names[m][trusted_marks];
}

int layer_set_mark(int fd, enum layer_mark m, const void *value, size_t len)
{
    return fsetxattr(fd, layer_mark_name(m), value, len, 0) < 0 ? -errno : 0;
}

bool layer_is_whiteout(const struct stat *st)
{
    return S_ISCHR(st->st_mode) && st->st_rdev == makedev(0, 0);
}

bool layer_is_opaque(int dir)
{
    char v;

    return fgetxattr(dir, layer_mark_name(MARK_OPAQUE), &v, 1) == 1 && v == 'y';
}

int layer_expect_whiteouts(int dir)
{
    return layer_set_mark(dir, MARK_ORIGIN, "", 0);
}

void layer_closedir_p(DIR **d)
{
    if (*d)
        closedir(*d);
}

DIR *layer_list(int dir)
{
    int fd = openat(dir, ".", LAYER_DIR_FLAGS);
    DIR *d = fd < 0 ? NULL : fdopendir(fd);

    if (!d)
        close_p(&fd);
    return d;
}

int layer_next(DIR *d, const char **ret)
{
    struct dirent *entry;

    if (!d)
        return errno > 0 ? -errno : -EIO;
    do {
        errno = 0;
        entry = readdir(d);
    } while (entry && (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0));
    if (!entry)
        return -errno;
    *ret = entry->d_name;
    return 1;
}

static bool has_prefix(const char *name, const char *prefix)
{
    return strncmp(name, prefix, strlen(prefix)) == 0;
}

/* Whether it is the overlay's own. A user's attribute of such a name is stored with another prefix. */
static bool is_mark(const char *name)
{
    return !trusted_marks && has_prefix(name, "user.overlay.") &&
           !has_prefix(name, "user.overlay.overlay.");
}

int layer_copy_xattrs(int from, int to, bool acls)
{
    static char names[LAYER_XATTR_MAX], value[LAYER_XATTR_MAX];
    ssize_t n = flistxattr(from, names, sizeof(names));

    if (n < 0)
        return errno == ENOTSUP ? 0 : -errno;
    for (const char *p = names; p < names + n; p += strlen(p) + 1) {
        if ((!has_prefix(p, "user.") || is_mark(p)) &&
            !(acls && has_prefix(p, "system.posix_acl_")))
            continue;
        ssize_t len = fgetxattr(from, p, value, sizeof(value));
        if (len < 0)
            return -errno;
        if (fsetxattr(to, p, value, (size_t)len, 0) == 0)
            continue;
        /* These mean that this file has no room for the attribute, not that the disk is full. */
        return errno == ENOSPC || errno == E2BIG || errno == ERANGE ? -EOVERFLOW : -errno;
    }
    return 0;
}

/* Copies the bytes between at and end, or up to the end of the file. */
static int send_range(int in, int out, off_t at, off_t end)
{
    if (lseek(out, at, SEEK_SET) < 0)
        return -errno;
    while (at < end) {
        size_t left = (size_t)(end - at);
        ssize_t n = sendfile(out, in, &at, left < SEND_MAX ? left : SEND_MAX);
        if (n < 0 && errno != EINTR)
            return -errno;
        if (n == 0)
            break;
    }
    return 0;
}

int layer_copy_data(int in, int out, off_t size)
{
    off_t at = 0;

    while ((at = lseek(in, at, SEEK_DATA)) >= 0 && at < size) {
        off_t end = lseek(in, at, SEEK_HOLE);
        int r = end < 0 ? -errno : send_range(in, out, at, end);
        if (r < 0)
            return r;
        at = end;
    }
    if (at < 0 && errno != ENXIO)
        return -errno;
    return ftruncate(out, size) < 0 ? -errno : 0;
}

int layer_copy_looks(const struct stat *st, int from, int to)
{
    struct timespec times[2] = {st->st_atim, st->st_mtim};
    int r;

    /* Removes access lists that the file inherited from the directory it was made in. */
    fremovexattr(to, "system.posix_acl_access");
    fremovexattr(to, "system.posix_acl_default");
    r = layer_copy_xattrs(from, to, true);
    if (r < 0)
        return r;
    /* The owner comes first: changing it clears bits of the mode. */
    if (fchown(to, st->st_uid, st->st_gid) < 0 || fchmod(to, st->st_mode & 07777) < 0 ||
        futimens(to, times) < 0)
        return -errno;
    return 0;
}
