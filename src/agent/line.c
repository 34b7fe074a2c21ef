#include "agent/line.h"

#include "base/fd.h"

/* One message: false if there is none now, or the line is over. */
static bool take_message(struct line *l)
{
    int fds[2];
    size_t n = ARRAY_SIZE(fds);
    char byte;
    ssize_t got = fd_recv(l->fd, &byte, 1, fds, &n);

    if (got == -EAGAIN)
        return false;
    if (got == 1 && n == 1) {
        close_p(&l->channel);
        l->channel = fds[0];
        return true;
    }
    while (got >= 0 && n > 0)
        close(fds[--n]);
    l->over = true;
    return false;
}

static void on_line(struct loop_source *src, uint32_t events)
{
    struct line *l = CONTAINER_OF(src, struct line, src);

    (void)events;
    while (take_message(l))
        ;
}

void line_init(struct line *l, struct loop *loop)
{
    *l = (struct line){.loop = loop, .src = {.fd = -1, .fn = on_line}, .fd = -1, .channel = -1};
}

int line_open(struct line *l, int fd)
{
    int r = fd_set_nonblock(fd, true);

    l->fd = fd;
    return r < 0 ? r : loop_watch(l->loop, &l->src, fd, EPOLLIN);
}

void line_done(struct line *l)
{
    loop_unwatch(l->loop, &l->src);
    close_p(&l->fd);
    close_p(&l->channel);
}
