/* System calls that musl (and for some, glibc 2.36) has no wrapper for. Each returns what the
 * kernel returns through syscall(2): -1 and errno on failure. */
#pragma once

#include <fcntl.h>
#include <linux/close_range.h>
#include <linux/mount.h>
#include <linux/openat2.h>
#include <linux/sched.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

#ifndef P_PIDFD /* an enumerator of glibc */
#define P_PIDFD 3
#endif

/* fork() with namespaces: parent and child share no memory, so the child returns here as well. */
static inline pid_t sys_clone3(struct clone_args *args)
{
    return (pid_t)syscall(SYS_clone3, args, sizeof(*args));
}

static inline int sys_open_tree(int dirfd, const char *path, unsigned flags)
{
    return (int)syscall(SYS_open_tree, dirfd, path, flags);
}

static inline int sys_move_mount(int from_fd, int to_dirfd, const char *to_path)
{
    return (int)syscall(SYS_move_mount, from_fd, "", to_dirfd, to_path, MOVE_MOUNT_F_EMPTY_PATH);
}

static inline int sys_fsopen(const char *fs)
{
    return (int)syscall(SYS_fsopen, fs, FSOPEN_CLOEXEC);
}

static inline int sys_fsconfig_string(int fs, const char *key, const char *value)
{
    return (int)syscall(SYS_fsconfig, fs, FSCONFIG_SET_STRING, key, value, 0);
}

static inline int sys_fsconfig_flag(int fs, const char *key)
{
    return (int)syscall(SYS_fsconfig, fs, FSCONFIG_SET_FLAG, key, NULL, 0);
}

static inline int sys_fsconfig_create(int fs)
{
    return (int)syscall(SYS_fsconfig, fs, FSCONFIG_CMD_CREATE, NULL, NULL, 0);
}

static inline int sys_fsmount(int fs, unsigned attrs)
{
    return (int)syscall(SYS_fsmount, fs, FSMOUNT_CLOEXEC, attrs);
}

static inline int sys_fspick(int fd)
{
    return (int)syscall(SYS_fspick, fd, "", FSPICK_CLOEXEC | FSPICK_EMPTY_PATH);
}

static inline int sys_fsconfig_reconfigure(int fs)
{
    return (int)syscall(SYS_fsconfig, fs, FSCONFIG_CMD_RECONFIGURE, NULL, NULL, 0);
}

static inline int sys_mount_setattr(int fd, unsigned flags, struct mount_attr *attr)
{
    return (int)syscall(SYS_mount_setattr, fd, "", AT_EMPTY_PATH | flags, attr, sizeof(*attr));
}

static inline int sys_openat2(int dirfd, const char *path, const struct open_how *how)
{
    return (int)syscall(SYS_openat2, dirfd, path, how, sizeof(*how));
}

static inline int sys_close_range(unsigned first, unsigned last, unsigned flags)
{
    return (int)syscall(SYS_close_range, first, last, flags);
}

static inline int sys_pivot_root(const char *new_root, const char *put_old)
{
    return (int)syscall(SYS_pivot_root, new_root, put_old);
}
