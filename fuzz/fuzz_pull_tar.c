/* A tar: whatever it says, files lie within it. */
#include <assert.h>
#include <string.h>
#include <sys/mman.h>

#include "lib/base/fd.h"
#include "pull/tar.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    static const char *const names[] = {"index.json", "manifest.json", "a/layer.tar",
                                        "b/layer.tar"};
    AUTO(close_p) int fd = memfd_create("tar", MFD_CLOEXEC);
    struct sg_error e = {0};
    uint64_t offset, size;
    struct tar t;

    if (fd < 0 || fd_write_all(fd, data, len) < 0)
        return 0;
    if (tar_open(&t, fd, &e) < 0) {
        assert(e.message[0] && !strchr(e.message, '\n'));
        return 0;
    }
    for (size_t i = 0; i < ARRAY_SIZE(names); i++)
        if (tar_find(&t, names[i], &offset, &size))
            assert(offset <= len && size <= len - offset);
    tar_done(&t);
    return 0;
}
