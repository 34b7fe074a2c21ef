#include "warden/layers/world.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/xattr.h>

#include "lib/base/fd.h"
#include "lib/base/sys.h"
#include "warden/host/block.h"
#include "warden/layers/attach.h"
#include "warden/layers/mounts.h"

#define WORLD_FLAGS (MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_RDONLY)

/* A mount in the making. */
struct making {
    int fs, dir;
    bool by_device;                   /* its files become block devices */
    int devices[1 + WORLD_BLOBS_MAX]; /* that are open until it is made */
    size_t n_devices;
};

static void making_done(struct making *m)
{
    close_p(&m->fs);
    while (m->n_devices > 0)
        close_p(&m->devices[--m->n_devices]);
}

/* The kernel opens the files by name. */
static int add_file(struct making *m, const char *key, const char *file, struct sg_error *e)
{
    AUTO(close_p) int fd = -1;
    char path[48];
    int r;

    if (!m->by_device) {
        snprintf(path, sizeof(path), "/proc/self/fd/%d/%s", m->dir, file);
    } else {
        fd = openat(m->dir, file, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
        r = fd < 0 ? err_errno(e, "open '%s' of a world", file)
                   : block_device_make(fd, true, &m->devices[m->n_devices], e);
        if (r < 0)
            return r;
        snprintf(path, sizeof(path), "/proc/self/fd/%d", m->devices[m->n_devices++]);
    }
    return sys_fsconfig_string(m->fs, key, path) < 0
               ? mounts_mount_error(m->fs, e, "mount the files of a world")
               : 0;
}

static int add_blobs(struct making *m, struct sg_error *e)
{
    char name[8];
    int r;

    for (unsigned i = 0;; i++) {
        snprintf(name, sizeof(name), "%u", i);
        if (faccessat(m->dir, name, F_OK, AT_SYMLINK_NOFOLLOW) < 0)
            return errno == ENOENT ? 0 : err_errno(e, "look for the contents of a world");
        if (i == WORLD_BLOBS_MAX)
            return err_set(e, SG_ERR_LIMIT, -E2BIG, "a world has more than %u layers",
                           WORLD_BLOBS_MAX);
        r = add_file(m, "device", name, e);
        if (r < 0)
            return r;
    }
}

static void closedir_p(DIR **d)
{
    if (*d)
        closedir(*d);
}

/* An opaque directory hides what is below it. */
static bool is_opaque(int fd)
{
    char mark[2];

    return fgetxattr(fd, "user.overlay.opaque", mark, sizeof(mark)) > 0 ||
           fgetxattr(fd, "trusted.overlay.opaque", mark, sizeof(mark)) > 0;
}

/* Only a directory has a place for the root's own /usr/local. */
static bool is_directory(int at, const char *name)
{
    struct stat st;

    return fstatat(at, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(st.st_mode);
}

bool world_is_changed_by(int at, const char *layer)
{
    AUTO(close_p) int top = openat(at, layer, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    int fd = openat(top, "usr", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    AUTO(closedir_p) DIR *d = fd < 0 ? NULL : fdopendir(fd);
    const struct dirent *entry;

    if (!d)
        return errno != ENOENT;
    while ((entry = readdir(d)) != NULL)
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0 &&
            (strcmp(entry->d_name, "local") != 0 || !is_directory(fd, "local")))
            return true;
    return is_opaque(fd);
}

/* No link of the sandbox's is followed. */
static int open_dir(int at, const char *path)
{
    struct open_how how = {.flags = O_RDONLY | O_DIRECTORY | O_CLOEXEC,
                           .resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS};

    return sys_openat2(at, path, &how);
}

bool world_packages_are_changed_by(int at, const char *layer)
{
    AUTO(close_p) int top = openat(at, layer, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    AUTO(close_p) int local = open_dir(top, "usr/local");
    int fd = open_dir(top, "usr/local/lib");
    AUTO(closedir_p) DIR *d = fd < 0 ? NULL : fdopendir(fd);
    const struct dirent *entry;

    if (!d)
        return errno != ENOENT || is_opaque(local);
    for (unsigned n = 0; (entry = readdir(d)) != NULL; n++)
        if (n == PACKAGES_NAMES || strncmp(entry->d_name, "python", 6) == 0)
            return true;
    return is_opaque(fd) || is_opaque(local);
}

static int make(struct making *m, int *ret, struct sg_error *e)
{
    int r;

    m->fs = sys_fsopen("erofs");
    if (m->fs < 0)
        return errno == ENODEV
                   ? err_set(e, SG_ERR_UNSUPPORTED, -ENODEV,
                             "templates with files of their own need a kernel with EROFS")
                   : err_errno(e, "open the file system EROFS");
    r = add_file(m, "source", "meta", e);
    if (r == 0)
        r = add_blobs(m, e);
    if (r < 0)
        return r;
    if (sys_fsconfig_flag(m->fs, "ro") < 0 || sys_fsconfig_create(m->fs) < 0)
        return mounts_mount_error(m->fs, e, "mount a world");
    *ret = sys_fsmount(m->fs, WORLD_FLAGS);
    return *ret < 0 ? err_errno(e, "mount a world") : 0;
}

int world_mount(int dir, int *ret, struct sg_error *e)
{
    static bool by_device; /* set when files were refused: before Linux 6.12 */
    AUTO(making_done) struct making m = {.fs = -1, .dir = dir, .by_device = by_device};
    AUTO(close_p) int mount = -1;
    int r = make(&m, &mount, e);

    if (r == -ENOTBLK && !by_device) {
        close_p(&m.fs);
        m.by_device = by_device = true;
        r = make(&m, &mount, e);
    }
    if (r == 0)
        r = attach_keep(mount, e);
    if (r == 0)
        *ret = steal_fd(&mount);
    return r;
}
