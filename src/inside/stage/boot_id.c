/* A boot_id of its own for each sandbox.
 *
 * Programs use the kernel's boot_id as a name for the machine's current run. The host's would be
 * the same in all sandboxes, and tell which of them share a host. So a file with a random boot_id
 * covers it. The file is in the sandbox's own layer, under a read-only mount.
 *
 * The file keeps its name there, because live fork makes the file system read-only
 * (warden/providers/process/files.c), and that fails while a file without a name is in use. If
 * somebody inside removes the file, the sandbox cannot be forked. */
#include <fcntl.h>
#include <sys/mount.h>

#include "lib/base/fd.h"
#include "lib/base/uuid.h"
#include "lib/base/sys.h"
#include "inside/stage/boot_id.h"

#define SOURCE "/new/run/.boot_id"
#define TARGET "/new/proc/sys/kernel/random/boot_id"

static int make_source(struct sg_error *e)
{
    AUTO(close_p) int fd = open(SOURCE, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0444);
    char text[UUID_LEN + 1];
    int r = fd < 0 ? -errno : 0;

    uuid_random(text);
    text[UUID_LEN] = '\n';
    if (r == 0)
        r = fd_write_all(fd, text, sizeof(text));
    if (r == -EEXIST)
        return err_set(e, SG_ERR_GONE, -EBUSY,
                       "/run/.boot_id is a directory: a sandbox cannot start with that, end it");
    return r < 0 ? err_code(e, r, "write the boot id") : 0;
}

/* Uses mount(2): a detached mount would count as a namespace, and new namespaces are forbidden by
 * now. */
static int cover(struct sg_error *e)
{
    AUTO(close_p) int at = -1;
    struct mount_attr attr = {.attr_set = MOUNT_ATTR_RDONLY};

    if (mount(SOURCE, TARGET, NULL, MS_BIND, NULL) < 0)
        return err_errno(e, "cover the boot id");
    at = open(TARGET, O_PATH | O_CLOEXEC);
    if (at < 0 || sys_mount_setattr(at, 0, &attr) < 0)
        return err_errno(e, "make the boot id read-only");
    return 0;
}

int boot_id_renew(struct sg_error *e)
{
    int r;

    unlink(SOURCE); /* a saved layer may hold anything */
    r = make_source(e);
    return r < 0 ? r : cover(e);
}
