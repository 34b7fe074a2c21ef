#include "cli/client/log_tail.h"

#include <fcntl.h>
#include <string.h>
#include <time.h>

#include "lib/base/err.h"

#define NAME     "server.log"
#define ASIDE    NAME ".1"
#define PIECE    (256u * 1024)
#define TRIES    100 /* how often we look whether the copied log was emptied */
#define PAUSE_NS 2000000l

int log_tail_open(struct log_tail *t, const char *dir)
{
    int r;

    *t = (struct log_tail){.dir = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC), .fd = -1};
    strbuf_init(&t->begun, LOG_TAIL_LINE_MAX);
    if (t->dir < 0)
        return -errno;
    t->fd = openat(t->dir, NAME, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (t->fd >= 0)
        return 0;
    r = -errno;
    close_p(&t->dir);
    return r;
}

void log_tail_close(struct log_tail *t)
{
    close_p(&t->fd);
    close_p(&t->dir);
    strbuf_done(&t->begun);
}

static void take(struct log_tail *t, const char *data, size_t len, log_tail_fn fn, void *arg)
{
    for (const char *end; len > 0; data = end) {
        const char *nl = memchr(data, '\n', len);
        end = nl ? nl + 1 : data + len;
        strbuf_add(&t->begun, data, (size_t)(end - data));
        len -= (size_t)(end - data);
        if (!nl)
            return;
        if (!t->begun.truncated)
            fn(arg, t->begun.buf, t->begun.len - 1);
        strbuf_reset(&t->begun);
    }
}

/* Takes the lines from *at to the end of fd, and moves *at there. */
static int read_on(struct log_tail *t, int fd, off_t *at, log_tail_fn fn, void *arg)
{
    AUTO(free_p) char *piece = xcalloc(1, PIECE);

    for (;;) {
        ssize_t n = pread(fd, piece, PIECE, *at);
        if (n < 0 && errno != EINTR)
            return -errno;
        if (n == 0)
            return 0;
        if (n > 0) {
            take(t, piece, (size_t)n, fn, arg);
            *at += n;
        }
    }
}

/* Waits until the server has emptied the log. It copies the log aside first, so we may see the copy
 * a moment before the log is cut. */
static void await_cut(const struct log_tail *t)
{
    struct timespec pause = {.tv_nsec = PAUSE_NS};
    struct stat st;

    for (int i = 0; i < TRIES && fstat(t->fd, &st) == 0 && st.st_size >= t->aside.st_size; i++)
        nanosleep(&pause, NULL);
}

static bool same_file(const struct stat *a, const struct stat *b)
{
    return a->st_ino == b->st_ino && a->st_mtim.tv_sec == b->st_mtim.tv_sec &&
           a->st_mtim.tv_nsec == b->st_mtim.tv_nsec;
}

/* If the log was copied aside since the last call, reads from the copy the part that we have not
 * read yet, from t->at on. */
static int read_aside(struct log_tail *t, log_tail_fn fn, void *arg)
{
    AUTO(close_p) int fd = openat(t->dir, ASIDE, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    bool first = t->at == 0 && t->aside.st_ino == 0;
    struct stat st;
    int r;

    if (fd < 0 || fstat(fd, &st) < 0)
        return errno == ENOENT ? 0 : -errno;
    if (same_file(&st, &t->aside))
        return 0;
    t->aside = st;
    r = read_on(t, fd, &t->at, fn, arg);
    if (!first)
        await_cut(t);
    t->at = 0;
    strbuf_reset(&t->begun);
    return r;
}

int log_tail_read(struct log_tail *t, log_tail_fn fn, void *arg)
{
    int r = read_aside(t, fn, arg);
    struct stat st;

    if (r < 0)
        return r;
    /* The log is shorter than before although there is no new copy: the disk had no room for
     * one. */
    if (fstat(t->fd, &st) == 0 && st.st_size < t->at) {
        t->at = 0;
        strbuf_reset(&t->begun);
    }
    return read_on(t, t->fd, &t->at, fn, arg);
}
