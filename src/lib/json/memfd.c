#include "lib/json/memfd.h"

#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>

#include "lib/base/fd.h"

int memfd_of_json(const char *name, json_t *tree, size_t max)
{
    AUTO(close_p) int fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
    AUTO(free_p) char *text = tree ? json_dumps(tree, JSON_COMPACT) : NULL;
    size_t len = text ? strlen(text) : 0;
    int r = -ENOMEM;

    json_decref(tree);
    if (fd >= 0 && text)
        r = len > max ? -E2BIG : fd_write_all(fd, text, len);
    if (r == 0 && fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW) < 0)
        r = -errno;
    if (text)
        explicit_bzero(text, len);
    return r == 0 ? steal_fd(&fd) : r == -E2BIG ? r : -ENOMEM;
}

int memfd_read_json(int fd, size_t max, json_t **ret)
{
    AUTO(free_p) char *text = NULL;
    size_t len = 0;
    int r;

    /* The descriptor's offset is shared with the one that the warden keeps. */
    r = lseek(fd, 0, SEEK_SET) < 0 ? -errno : fd_read_all(fd, max, &text, &len);
    if (r < 0)
        return r;
    *ret = json_loadb(text, len, 0, NULL);
    explicit_bzero(text, len);
    return 0;
}
