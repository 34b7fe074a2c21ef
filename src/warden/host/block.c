#include "warden/host/block.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <linux/loop.h>

#include "lib/base/fd.h"

#define BLOCK        4096
#define DEVICE_TRIES 64 /* others may take the free one first */

int block_device_make(int file, bool readonly, int *ret, struct sg_error *e)
{
    AUTO(close_p) int control = open("/dev/loop-control", O_RDWR | O_CLOEXEC);
    struct loop_config config = {
        .fd = (uint32_t)file,
        .block_size = BLOCK,
        .info.lo_flags = LO_FLAGS_AUTOCLEAR | LO_FLAGS_DIRECT_IO | /* the page cache has it once */
                         (readonly ? LO_FLAGS_READ_ONLY : 0)};
    char path[32];

    for (unsigned i = 0; control >= 0 && i < DEVICE_TRIES; i++) {
        int n = ioctl(control, LOOP_CTL_GET_FREE);
        AUTO(close_p) int device = -1;

        if (n < 0)
            break;
        snprintf(path, sizeof(path), "/dev/loop%d", n);
        device = open(path, (readonly ? O_RDONLY : O_RDWR) | O_CLOEXEC);
        if (device < 0)
            return err_errno(e, "open '%s'", path);
        if (ioctl(device, LOOP_CONFIGURE, &config) == 0) {
            *ret = steal_fd(&device);
            return 0;
        }
        if (errno != EBUSY)
            return err_errno(e, "make a block device of a file");
    }
    return err_errno(e, "find a free loop device");
}
