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
#include "warden/layers/mounts.h"

#define WORLD_FLAGS (MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_RDONLY)

/* The kernel opens the files by name. */
static int add_file(int fs, const char *key, int dir, const char *file)
{
    char path[48];

    snprintf(path, sizeof(path), "/proc/self/fd/%d/%s", dir, file);
    return sys_fsconfig_string(fs, key, path);
}

static int add_blobs(int fs, int dir, struct sg_error *e)
{
    char name[8];

    for (unsigned i = 0;; i++) {
        snprintf(name, sizeof(name), "%u", i);
        if (faccessat(dir, name, F_OK, AT_SYMLINK_NOFOLLOW) < 0)
            return errno == ENOENT ? 0 : err_errno(e, "look for the contents of a world");
        if (i == WORLD_BLOBS_MAX)
            return err_set(e, SG_ERR_LIMIT, -E2BIG, "a world has more than %u layers",
                           WORLD_BLOBS_MAX);
        if (add_file(fs, "device", dir, name) < 0)
            return mounts_mount_error(fs, e, "mount the contents of a world");
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

int world_mount(int dir, int *ret, struct sg_error *e)
{
    AUTO(close_p) int fs = sys_fsopen("erofs");
    int r;

    if (fs < 0)
        return errno == ENODEV
                   ? err_set(e, SG_ERR_UNSUPPORTED, -ENODEV,
                             "templates with files of their own need a kernel with EROFS")
                   : err_errno(e, "open the file system EROFS");
    if (add_file(fs, "source", dir, "meta") < 0)
        return mounts_mount_error(fs, e, "mount a world");
    r = add_blobs(fs, dir, e);
    if (r < 0)
        return r;
    if (sys_fsconfig_flag(fs, "ro") < 0 || sys_fsconfig_create(fs) < 0)
        return mounts_mount_error(fs, e, "mount a world");
    *ret = sys_fsmount(fs, WORLD_FLAGS);
    return *ret < 0 ? err_errno(e, "mount a world") : 0;
}
