#include "inside/broker/procfs.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "lib/base/fd.h"
#include "lib/base/sys.h"

#define STATUS_MAX  (64u << 10)
#define MEMBERS_MAX (1u << 20)
#define INFO_MAX    (16u << 10)
#define LIST_MAX    65536u

/* The result of statx(2): not every C library that we are built with declares it. */
struct statx_answer {
    uint32_t mask, block_size;
    uint64_t attributes;
    uint32_t nlink, uid, gid;
    uint16_t mode, spare;
    uint64_t ino, size, blocks, attributes_mask, times[8];
    uint32_t rdev_major, rdev_minor, dev_major, dev_minor;
    uint64_t mount, more[13];
};
_Static_assert(sizeof(struct statx_answer) == 256, "as the kernel has it");
#define WANT_BASIC 0x07ffu
#define WANT_MOUNT 0x1000u

int procfs_open(pid_t pid, int *ret_dir)
{
    char path[24];

    snprintf(path, sizeof(path), "/proc/%d", pid);
    *ret_dir = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
    return *ret_dir < 0 ? -errno : 0;
}

/* The value of `key`. A name in the text cannot fake a line, because Linux escapes line ends. */
static const char *value_of(const char *text, const char *key)
{
    size_t n = strlen(key);

    for (const char *line = text; line; line = strchr(line, '\n')) {
        line += *line == '\n';
        if (strncmp(line, key, n) == 0 && line[n] == ':')
            return line + n + 1 + strspn(line + n + 1, "\t ");
    }
    return NULL;
}

static unsigned long number_of(const char *text, const char *key, int base)
{
    const char *v = value_of(text, key);

    return v ? strtoul(v, NULL, base) : 0;
}

/* The last number in a line, and how many there are; reads at most `max` of them. */
static unsigned long last_of(const char *text, const char *key, unsigned max, unsigned *ret_n)
{
    const char *v = value_of(text, key);
    unsigned long last = 0;
    unsigned n = 0;

    while (v && *v >= '0' && *v <= '9' && n < max) {
        char *end;
        last = strtoul(v, &end, 10);
        v = end + strspn(end, "\t ");
        n++;
    }
    if (ret_n)
        *ret_n = n;
    return last;
}

int procfs_status(int dir, struct procfs_status *ret)
{
    AUTO(free_p) char *text = NULL;
    int r = file_read(dir, "status", STATUS_MAX, &text, NULL);
    const char *state;
    unsigned names;
    pid_t inside;

    if (r < 0)
        return r;
    state = value_of(text, "State");
    inside = (pid_t)last_of(text, "NSpid", ~0U, &names);
    *ret = (struct procfs_status){.inside = inside,
                                  .deep = names ? names - 1 : 0,
                                  .state = state ? *state : '?',
                                  .threads = (unsigned)number_of(text, "Threads", 10),
                                  .filters = (unsigned)number_of(text, "Seccomp_filters", 10),
                                  .uid = (uint32_t)last_of(text, "Uid", 4, NULL),
                                  .gid = (uint32_t)last_of(text, "Gid", 4, NULL),
                                  .umask = (uint32_t)number_of(text, "Umask", 8),
                                  .rss_bytes = number_of(text, "VmRSS", 10) * 1024};
    return ret->inside > 0 ? 0 : -ESRCH;
}

void numbers_done(struct numbers *l)
{
    free(l->v);
    *l = (struct numbers){0};
}

void numbers_add(struct numbers *l, int number)
{
    l->v = xgrow(l->v, l->n, &l->cap, sizeof(*l->v));
    l->v[l->n++] = number;
}

bool numbers_have(const struct numbers *l, int number)
{
    for (size_t i = 0; i < l->n; i++)
        if (l->v[i] == number)
            return true;
    return false;
}

/* Adds one that Linux has listed. */
static int append(struct numbers *l, int number)
{
    if (l->n == LIST_MAX)
        return -E2BIG;
    numbers_add(l, number);
    return 0;
}

/* Opens the list anew each time: in cgroup v1 an open file keeps what it returned first. */
int procfs_members(int file, struct numbers *ret)
{
    AUTO(free_p) char *text = NULL;
    char path[40];
    int r;

    snprintf(path, sizeof(path), "/proc/self/fd/%d", file);
    r = file_read(AT_FDCWD, path, MEMBERS_MAX, &text, NULL);
    for (char *p = text, *end; r == 0 && *p; p = *end ? end + 1 : end) {
        long pid = strtol(p, &end, 10);
        if (end == p)
            r = -EPROTO;
        else if (pid > 0)
            r = append(ret, (int)pid);
    }
    return r;
}

static void closedir_p(DIR **d)
{
    if (*d)
        closedir(*d);
}

/* The names in a directory that are numbers. */
static int list_numbers(int dir, const char *name, struct numbers *ret)
{
    int fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC), r = 0;
    AUTO(closedir_p) DIR *d = fd < 0 ? NULL : fdopendir(fd);

    if (!d) {
        r = -errno;
        close_p(&fd);
        return r;
    }
    for (struct dirent *e = readdir(d); e && r == 0; e = readdir(d))
        if (e->d_name[0] >= '0' && e->d_name[0] <= '9')
            r = append(ret, (int)strtol(e->d_name, NULL, 10));
    return r;
}

int procfs_threads(int dir, struct numbers *ret)
{
    return list_numbers(dir, "task", ret);
}

size_t procfs_count_threads(int dir)
{
    struct procfs_process at = {0};

    return procfs_process(dir, "task", 0, &at) < 0 || at.nlink < 2 ? 0 : at.nlink - 2;
}

size_t procfs_command(int dir, char ret[PROCFS_COMMAND_MAX])
{
    static const char *const files[] = {"cmdline", "comm"};

    for (size_t i = 0; i < ARRAY_SIZE(files); i++) {
        AUTO(close_p) int fd = openat(dir, files[i], O_RDONLY | O_CLOEXEC);
        ssize_t n = fd < 0 ? -1 : read(fd, ret, PROCFS_COMMAND_MAX);
        while (n > 0 && (ret[n - 1] == '\0' || ret[n - 1] == '\n'))
            n--;
        for (ssize_t k = 0; k < n; k++)
            if (ret[k] == '\0')
                ret[k] = ' ';
        if (n > 0)
            return (size_t)n;
    }
    return 0;
}

ssize_t procfs_link(int dir, const char *which, char ret[PROCFS_PATH_MAX])
{
    ssize_t n = readlinkat(dir, which, ret, PROCFS_PATH_MAX);

    if (n < 0)
        return -errno;
    if (n == PROCFS_PATH_MAX)
        return -ENAMETOOLONG;
    ret[n] = '\0';
    return n;
}

int procfs_process(int dirfd, const char *path, int flags, struct procfs_process *ret)
{
    struct statx_answer a;

    if (syscall(SYS_statx, dirfd, path, flags, WANT_BASIC | WANT_MOUNT, &a) < 0)
        return -errno;
    *ret = (struct procfs_process){.mount = a.mask & WANT_MOUNT ? a.mount : 0,
                                   .dev = (uint64_t)a.dev_major << 32 | a.dev_minor,
                                   .ino = a.ino,
                                   .nlink = a.nlink,
                                   .mode = a.mode};
    return 0;
}

bool procfs_same(const struct procfs_process *a, const struct procfs_process *b)
{
    return a->mount == b->mount && a->dev == b->dev && a->ino == b->ino;
}

static int compare_ints(const void *a, const void *b)
{
    int x = *(const int *)a, y = *(const int *)b;

    return (x > y) - (x < y);
}

int procfs_fds(int dir, struct numbers *ret)
{
    int r = list_numbers(dir, "fd", ret);

    if (r == 0 && ret->n > 0)
        qsort(ret->v, ret->n, sizeof(*ret->v), compare_ints);
    return r;
}

int procfs_fd(int dir, int fd, struct procfs_fd *ret)
{
    AUTO(free_p) char *text = NULL;
    char path[32];
    int r;

    snprintf(path, sizeof(path), "fdinfo/%d", fd);
    r = file_read(dir, path, INFO_MAX, &text, NULL);
    if (r < 0)
        return r;
    *ret = (struct procfs_fd){.flags = (int)number_of(text, "flags", 8),
                              .offset = (int64_t)number_of(text, "pos", 10),
                              .locked = value_of(text, "lock") != NULL};
    return 0;
}
