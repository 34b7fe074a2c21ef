#include "wire/text_fd.h"

#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>

#include "lib/base/fd.h"

int text_memfd(const char *text, size_t len, struct sg_error *e)
{
    AUTO(close_p) int fd = memfd_create("sandglass", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    int r;

    if (fd < 0)
        return err_errno(e, "make a memfd");
    r = fd_write_all(fd, text, len);
    if (r < 0)
        return err_set(e, err_kind_of(-r), r, "write a memfd: %s", strerror(-r));
    if (lseek(fd, 0, SEEK_SET) < 0 ||
        fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) < 0)
        return err_errno(e, "seal a memfd");
    return steal_fd(&fd);
}
