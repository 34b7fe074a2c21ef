#include <fcntl.h>
#include <linux/capability.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "lib/base/fd.h"
#include "warden/providers/process/process_impl.h"

#define MOUNTINFO_MAX (4u << 20)

/* Whether / is no mount point, as it mostly is in a chroot: no line of the mount table has it. */
static bool root_is_no_mount(void)
{
    AUTO(free_p) char *table = NULL;

    if (file_read(AT_FDCWD, "/proc/self/mountinfo", MOUNTINFO_MAX, &table, NULL) < 0)
        return false;
    for (const char *line = table; line;
         line = strchr(line, '\n') ? strchr(line, '\n') + 1 : NULL) {
        char point[3];
        if (sscanf(line, "%*d %*d %*s %*s %2s", point) == 1 && strcmp(point, "/") == 0)
            return false;
    }
    return true;
}

/* Being root is not always enough. */
int provider_probe(struct sg_error *e)
{
    AUTO(free_p) char *map = NULL;
    unsigned long long count = 0;
    struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct caps[2] = {0};

    if (geteuid() != 0)
        return err_set(e, SG_ERR_DENIED, -EPERM,
                       "making sandboxes needs root: run it with sudo, or as a root service");
    if (file_read(AT_FDCWD, "/proc/self/uid_map", 4096, &map, NULL) == 0 &&
        sscanf(map, "%*u %*u %llu", &count) == 1 && count != UINT32_MAX)
        return err_set(e, SG_ERR_DENIED, -EPERM,
                       "making sandboxes needs the host's root, not the root of a user namespace: "
                       "see 'sandglass doctor'");
    if (syscall(SYS_capget, &head, caps) == 0 && !(caps[0].effective & 1u << CAP_SYS_ADMIN))
        return err_set(e, SG_ERR_DENIED, -EPERM,
                       "making sandboxes needs root with CAP_SYS_ADMIN, which is missing here: see "
                       "'sandglass doctor'");
    if (root_is_no_mount())
        return err_set(e, SG_ERR_UNSUPPORTED, -EPERM,
                       "this is a chroot, in which the kernel makes no user namespaces: enter the "
                       "directory by pivot_root, as containers do, or use a virtual machine");
    return 0;
}
