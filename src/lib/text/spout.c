#include "lib/text/spout.h"

#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/stat.h>

void spout_init(struct spout *s, int fd, size_t max)
{
    struct stat st = {0};
    char path[32];

    *s = (struct spout){.fd = fd, .own = -1};
    strbuf_init(&s->queue, max);
    if (fd < 0 || fstat(fd, &st) < 0)
        return;
    s->socket = S_ISSOCK(st.st_mode);
    if (!S_ISFIFO(st.st_mode))
        return;
    snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    s->own = open(path, O_WRONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY);
}

void spout_done(struct spout *s)
{
    close_p(&s->own);
    strbuf_done(&s->queue);
    *s = (struct spout){.fd = -1, .own = -1};
}

static bool has_room(int fd)
{
    struct pollfd p = {.fd = fd, .events = POLLOUT};

    return poll(&p, 1, 0) > 0;
}

/* Writes once, without waiting. -1: see errno. */
static ssize_t try_write(const struct spout *s, const void *data, size_t len)
{
    if (s->own >= 0)
        return write(s->own, data, len);
    if (s->socket)
        return send(s->fd, data, len, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (!has_room(s->fd)) {
        errno = EAGAIN;
        return -1;
    }
    return write(s->fd, data, len < PIPE_BUF ? len : PIPE_BUF);
}

/* Writes as much as goes without waiting. Drops everything if nobody will ever read it. */
static size_t push(struct spout *s, const char *data, size_t len)
{
    size_t done = 0;

    while (done < len && !s->error) {
        ssize_t n = try_write(s, data + done, len - done);

        if (n >= 0)
            done += (size_t)n;
        else if (errno == EAGAIN)
            return done;
        else if (errno != EINTR)
            s->error = errno;
    }
    return len;
}

size_t spout_waiting(const struct spout *s)
{
    return s->queue.len - s->off;
}

size_t spout_pump(struct spout *s)
{
    size_t n = push(s, s->queue.buf + s->off, spout_waiting(s));

    s->off += n;
    if (spout_waiting(s) == 0)
        strbuf_reset(&s->queue);
    else if (s->off > spout_waiting(s)) /* this way no byte is moved more than once per byte sent */
        strbuf_consume(&s->queue, s->off);
    else
        return n;
    s->off = 0;
    return n;
}

size_t spout_write(struct spout *s, const void *data, size_t len)
{
    size_t before = spout_waiting(s) > 0 ? spout_pump(s) : 0, n = 0;

    if (spout_waiting(s) == 0)
        n = push(s, data, len);
    strbuf_add(&s->queue, (const char *)data + n, len - n);
    return before + n;
}

void spout_hung_up(struct spout *s)
{
    if (!s->error)
        s->error = EPIPE;
}
