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

int local_file_open(struct local_file *f, int dirfd, const char *name, bool follow,
                    struct sg_error *e)
{
    static unsigned counter;
    const char *slash = strrchr(name, '/');

    *f = (struct local_file){.fd = -1, .dirfd = dirfd, .name = name};
    if (is_written_in_place(dirfd, name, follow)) {
        f->fd = openat(dirfd, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOCTTY, 0666);
        return f->fd < 0 ? err_errno(e, "cannot write '%.128s'", name) : 0;
    }
    if (asprintf(&f->temporary, "%.*s.sandglass-%d-%u.part", slash ? (int)(slash + 1 - name) : 0,
                 name, (int)getpid(), counter++) < 0)
        abort();
    f->fd = openat(dirfd, f->temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (f->fd >= 0)
        return 0;
    int r = err_errno(e, "cannot write '%.128s'", name);
    free(f->temporary);
    f->temporary = NULL;
    return r;
}

int local_file_keep(struct local_file *f, unsigned mode, struct sg_error *e)
{
    mode_t mask = umask(0);

    umask(mask);
    if (!f->temporary)
        return 0;
    if (fchmod(f->fd, mode & 0777 & ~mask) < 0 ||
        renameat(f->dirfd, f->temporary, f->dirfd, f->name) < 0)
        return err_errno(e, "cannot write '%.128s'", f->name);
    free(f->temporary);
    f->temporary = NULL;
    return 0;
}

void local_file_done(struct local_file *f)
{
    close_p(&f->fd);
    f->fd = -1;
    if (f->temporary)
        unlinkat(f->dirfd, f->temporary, 0);
    free(f->temporary);
    f->temporary = NULL;
}
