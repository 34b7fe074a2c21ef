/* Opens the path that --source names and decides whether it is a directory, a tar or a bundle. */
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "cli/shared/acp_source.h"

static bool ends_with(const char *path, const char *suffix)
{
    size_t len = strlen(path), n = strlen(suffix);

    return len > n && strcmp(path + len - n, suffix) == 0;
}

static int kind_of_file(const char *path, enum acp_source_kind *ret, struct sg_error *e)
{
    static const char *const tars[] = {".tar",  ".tar.gz", ".tgz",    ".tar.bz2",
                                       ".tbz2", ".tbz",    ".tar.xz", ".txz"};

    for (size_t i = 0; i < ARRAY_SIZE(tars); i++)
        if (ends_with(path, tars[i])) {
            *ret = ACP_SOURCE_TAR;
            return 0;
        }
    if (!ends_with(path, ".bundle"))
        return err_invalid(e,
                           "--source '%.200s' is neither a directory nor named like a tar (.tar, "
                           ".tar.gz, .tgz, .tar.bz2, .tar.xz) or a git bundle (.bundle)",
                           path);
    *ret = ACP_SOURCE_BUNDLE;
    return 0;
}

int acp_source_open(const char *path, struct acp_source *ret, struct sg_error *e)
{
    AUTO(close_p) int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    enum acp_source_kind kind = ACP_SOURCE_DIRECTORY;
    struct stat st;
    int r = 0;

    if (fd < 0 || fstat(fd, &st) < 0)
        return err_errno(e, "--source: cannot open '%.200s'", path);
    if (S_ISREG(st.st_mode))
        r = kind_of_file(path, &kind, e);
    else if (!S_ISDIR(st.st_mode))
        r = err_invalid(e, "--source '%.200s' is neither a directory nor a file", path);
    if (r < 0)
        return r;
    *ret = (struct acp_source){.kind = kind, .path = path, .fd = steal_fd(&fd)};
    return 0;
}

void acp_source_close(struct acp_source *s)
{
    close_p(&s->fd);
    s->fd = -1;
}
