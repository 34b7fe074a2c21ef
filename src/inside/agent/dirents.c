#include "inside/agent/dirents.h"

#include <string.h>
#include <sys/syscall.h>

#define BUF_SIZE 4096

/* The form in which getdents64(2) writes entries. */
struct kernel_dirent {
    uint64_t ino;
    int64_t off;
    uint16_t reclen;
    uint8_t type;
    char name[];
};

int dirents_init(struct dirents *d)
{
    *d = (struct dirents){.buf = malloc(BUF_SIZE)};
    return d->buf ? 0 : -ENOMEM;
}

void dirents_done(struct dirents *d)
{
    free(d->buf);
}

void dirents_reset(struct dirents *d)
{
    d->pos = d->len = 0;
}

int dirents_next(struct dirents *d, int fd, struct dirent_name *ret)
{
    for (;;) {
        if (d->pos >= d->len) {
            long n = syscall(SYS_getdents64, fd, d->buf, BUF_SIZE);

            if (n <= 0)
                return n < 0 && errno != ENOENT ? -errno : 0;
            d->pos = 0;
            d->len = (size_t)n;
        }
        const struct kernel_dirent *k = (const void *)(d->buf + d->pos);
        d->pos += k->reclen;
        if (strcmp(k->name, ".") == 0 || strcmp(k->name, "..") == 0)
            continue;
        *ret = (struct dirent_name){.name = k->name, .type = k->type};
        return 1;
    }
}
