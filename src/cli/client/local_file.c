#include "cli/client/local_file.h"

#include <fcntl.h>
#include <sys/stat.h>

/* Whether we must write to the name itself, because a rename would replace the device, the pipe or
 * the link that the user named. */
static bool is_written_in_place(int dirfd, const char *name, bool follow)
{
    struct stat st;

    if (fstatat(dirfd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return false;
    if (S_ISLNK(st.st_mode))
        return follow;
    return follow && !S_ISREG(st.st_mode);
}

static char *directory_of(const char *name)
{
    const char *slash = strrchr(name, '/');

    return slash ? strndup(name, (size_t)(slash + 1 - name)) : xstrdup("");
}

int local_file_open(struct local_file *f, int dirfd, const char *name, bool follow,
                    struct sg_error *e)
{
    static unsigned counter;
    AUTO(free_p) char *dir = directory_of(name), *path = NULL;

    *f = (struct local_file){.fd = -1, .dirfd = dirfd, .name = name};
    if (is_written_in_place(dirfd, name, follow)) {
        f->fd = openat(dirfd, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOCTTY, 0666);
        return f->fd < 0 ? err_errno(e, "cannot write '%.128s'", name) : 0;
    }
    snprintf(f->temporary, sizeof(f->temporary), ".sandglass-%d-%u.part", (int)getpid(), counter++);
    if (asprintf(&path, "%s%s", dir, f->temporary) < 0)
        return err_set(e, SG_ERR_INTERNAL, -ENOMEM, "out of memory");
    f->fd = openat(dirfd, path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (f->fd < 0) {
        f->temporary[0] = '\0';
        return err_errno(e, "cannot write '%.128s'", name);
    }
    return 0;
}

int local_file_keep(struct local_file *f, unsigned mode, struct sg_error *e)
{
    AUTO(free_p) char *dir = directory_of(f->name), *path = NULL;
    mode_t mask = umask(0);

    umask(mask);
    if (!f->temporary[0])
        return 0;
    if (asprintf(&path, "%s%s", dir, f->temporary) < 0)
        return err_set(e, SG_ERR_INTERNAL, -ENOMEM, "out of memory");
    if (fchmod(f->fd, mode & 0777 & ~mask) < 0 || renameat(f->dirfd, path, f->dirfd, f->name) < 0)
        return err_errno(e, "cannot write '%.128s'", f->name);
    f->temporary[0] = '\0';
    return 0;
}

void local_file_done(struct local_file *f)
{
    AUTO(free_p) char *dir = directory_of(f->name), *path = NULL;

    if (f->fd >= 0)
        close(f->fd);
    f->fd = -1;
    if (f->temporary[0] && asprintf(&path, "%s%s", dir, f->temporary) >= 0)
        unlinkat(f->dirfd, path, 0);
    f->temporary[0] = '\0';
}
