#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "lib/audit/audit_impl.h"

#define FILE_PREFIX "audit-"
#define FILE_SUFFIX ".jsonl"
#define FILES_MAX   100000u

void audit_file_name(uint32_t number, char *buf, size_t cap)
{
    snprintf(buf, cap, FILE_PREFIX "%06u" FILE_SUFFIX, number);
}

static bool read_name(const char *name, uint32_t *ret)
{
    char again[64];
    uint64_t v = 0;
    const char *p = name + strlen(FILE_PREFIX);

    if (strncmp(name, FILE_PREFIX, strlen(FILE_PREFIX)) != 0)
        return false;
    for (; *p >= '0' && *p <= '9' && v < UINT32_MAX / 10; p++)
        v = v * 10 + (uint64_t)(*p - '0');
    audit_file_name((uint32_t)v, again, sizeof(again));
    *ret = (uint32_t)v;
    return v > 0 && strcmp(again, name) == 0;
}

static int by_number(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

    return x < y ? -1 : x > y;
}

static void closedir_p(DIR **d)
{
    if (*d)
        closedir(*d);
}

int audit_files(int dirfd, uint32_t **ret, size_t *ret_n, struct sg_error *e)
{
    /* Opened again, because a duplicate would share its read position with others. */
    AUTO(close_p) int fd = openat(dirfd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    AUTO(closedir_p) DIR *dir = fd < 0 ? NULL : fdopendir(fd);
    AUTO(free_p) uint32_t *all = NULL;
    size_t n = 0, cap = 0;
    struct dirent *d;

    if (!dir)
        return err_errno(e, "read the directory of the record");
    steal_fd(&fd);
    while ((d = readdir(dir)) && n < FILES_MAX) {
        all = xgrow(all, n, &cap, sizeof(*all));
        if (read_name(d->d_name, &all[n]))
            n++;
    }
    if (n > 0)
        qsort(all, n, sizeof(*all), by_number);
    *ret = steal_ptr(&all);
    *ret_n = n;
    return 0;
}

int audit_file_open(int dirfd, uint32_t number, int flags)
{
    char name[64];
    struct stat st;

    audit_file_name(number, name, sizeof(name));
    AUTO(close_p)
    int fd = openat(dirfd, name, flags | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY, 0600);
    if (fd < 0 || fstat(fd, &st) < 0)
        return -errno;
    return S_ISREG(st.st_mode) ? steal_fd(&fd) : -EINVAL;
}

void audit_files_trim(int dirfd, uint32_t *oldest, uint32_t newest, uint32_t keep)
{
    char name[64];

    for (; *oldest < newest && newest - *oldest >= keep; (*oldest)++) {
        audit_file_name(*oldest, name, sizeof(name));
        unlinkat(dirfd, name, 0);
    }
}

/* ---- tenants --------------------------------------------------------------------------------- */

int audit_tenant_open(int dirfd, const char *tenant)
{
    int fd =
        openat(dirfd, tenant[0] ? tenant : ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);

    return fd < 0 ? -errno : fd;
}

static int by_text(const void *a, const void *b)
{
    return strcmp(a, b);
}

int audit_tenants(int dirfd, char (**ret)[ID_LEN + 1], size_t *ret_n, struct sg_error *e)
{
    AUTO(close_p) int fd = openat(dirfd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    AUTO(closedir_p) DIR *dir = fd < 0 ? NULL : fdopendir(fd);
    char(*all)[ID_LEN + 1] = NULL;
    size_t n = 0, cap = 0;
    struct dirent *d;

    if (!dir)
        return err_errno(e, "read the directory of the record");
    steal_fd(&fd);
    while ((d = readdir(dir)) && n < FILES_MAX) {
        if (!id_valid(d->d_name))
            continue;
        all = xgrow(all, n, &cap, sizeof(*all));
        memcpy(all[n++], d->d_name, ID_LEN + 1);
    }
    if (n > 0)
        qsort(all, n, sizeof(*all), by_text);
    *ret = all;
    *ret_n = n;
    return 0;
}
