#include "warden/logfile.h"

#include <fcntl.h>
#include <string.h>
#include <sys/sendfile.h>
#include <sys/stat.h>

#include "lib/base/clock.h"
#include "lib/log/log.h"
#include "warden/server.h"

#define LOGFILE_OLD  LOGFILE_NAME ".1"
#define LOGFILE_NEXT LOGFILE_NAME ".next"
#define LOOK_NS      1000000000ull
#define PIECE        (1u << 20)

static int copy(int from, int to)
{
    off_t at = 0;

    for (;;) {
        ssize_t n = sendfile(to, from, &at, PIECE);
        if (n == 0)
            return 0;
        if (n < 0 && errno != EINTR)
            return -errno;
    }
}

static int put_aside(const struct logfile *l)
{
    AUTO(close_p) int from = openat(l->dir, LOGFILE_NAME, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    AUTO(close_p) int to = -1;
    int r;

    unlinkat(l->dir, LOGFILE_NEXT, 0);
    to = openat(l->dir, LOGFILE_NEXT, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (from < 0 || to < 0)
        return -errno;
    r = copy(from, to);
    if (r == 0 && renameat(l->dir, LOGFILE_NEXT, l->dir, LOGFILE_OLD) < 0)
        r = -errno;
    if (r < 0)
        unlinkat(l->dir, LOGFILE_NEXT, 0);
    return r;
}

void logfile_check(struct logfile *l)
{
    struct stat st;
    int r;

    if (l->fd < 0 || fstat(l->fd, &st) < 0 || (uint64_t)st.st_size <= l->server->settings.log_size)
        return;
    r = put_aside(l);
    if (ftruncate(l->fd, 0) == 0 && r < 0)
        log_line(LEVEL_WARN, "the log file was full and could not be rotated: it was emptied (%s)",
                 strerror(-r));
}

static void on_timer(struct loop_timer *timer)
{
    struct logfile *l = CONTAINER_OF(timer, struct logfile, timer);

    logfile_check(l);
    loop_timer_set(&l->server->loop, &l->timer, clock_ns() + LOOK_NS);
}

void logfile_open(struct logfile *l, struct server *s)
{
    *l = (struct logfile){.server = s, .dir = -1, .fd = -1, .timer.fn = on_timer};
    if (s->settings.log_size == 0)
        return;
    if (mkdirat(s->state.dir, "log", 0700) < 0 && errno != EEXIST) {
        log_line(LEVEL_WARN, "this log has no file: cannot make '%s/log': %s", s->state.path,
                 strerror(errno));
        return;
    }
    l->dir = openat(s->state.dir, "log", O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    if (l->dir >= 0)
        l->fd = openat(l->dir, LOGFILE_NAME,
                       O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600);
    if (l->fd < 0) {
        log_line(LEVEL_WARN, "this log has no file: cannot open '%s/log/" LOGFILE_NAME "': %s",
                 s->state.path, strerror(errno));
        close_p(&l->dir);
        return;
    }
    log_to_file(l->fd);
    on_timer(&l->timer);
}

void logfile_close(struct logfile *l)
{
    log_to_file(-1);
    if (l->server)
        loop_timer_cancel(&l->server->loop, &l->timer);
    close_p(&l->fd);
    close_p(&l->dir);
}
