#include "inside/agent/serve.h"

#include <string.h>

#include "lib/base/fd.h"
#include "lib/ipc/ipc.h"

/* False: a warden sends no such message here. Otherwise the descriptors are taken over. */
static bool take(struct line *l, const struct line_message *m, const int *fds, size_t n)
{
    struct agent *a = l->agent;
    bool kernels = a->config->twins;

    if (m->what == LINE_CHANNEL && n == 1) {
        close_p(&l->channel);
        l->channel = fds[0];
    } else if (m->what == LINE_KERNEL && n == LINE_FDS_MAX && m->pid > 1 && m->was >= 0 &&
               kernels) {
        kernel_came(a, m->pid, m->was, fds);
    } else if (m->what == LINE_NO_KERNEL && n == 0 && kernels) {
        no_kernel_came(a);
    } else if (m->what == LINE_ROOT && (n == 1 || n == 1 + STAGE_FIGURES) &&
               (m->code & ~(LINE_ROOT_CLEAR | LINE_ROOT_BARE)) == 0) {
        root_came(a, fds, n, m->code);
    } else if (m->what == LINE_MOUNT && n == 1 && memchr(m->target, '\0', sizeof(m->target))) {
        line_told(l, LINE_MOUNT, root_attach(fds[0], m->target, NULL));
        close(fds[0]);
    } else {
        return false;
    }
    return true;
}

/* Takes one message. False if there is none now, or the line is over. */
static bool take_message(struct line *l)
{
    struct line_message m;
    AUTO(ipc_fds_close) struct ipc_fds fds = {.max = LINE_FDS_MAX};
    ssize_t got = ipc_recv(l->fd, &m, sizeof(m), &fds);

    if (got == -EAGAIN)
        return false;
    if (got == (ssize_t)sizeof(m) && take(l, &m, fds.at, fds.n)) {
        fds.n = 0;
        return true;
    }
    l->over = true;
    return false;
}

static void on_line(struct loop_source *src, uint32_t events UNUSED)
{
    struct line *l = CONTAINER_OF(src, struct line, src);

    while (!l->over && take_message(l))
        ;
}

void line_init(struct line *l, struct agent *a)
{
    *l = (struct line){.agent = a, .src = {.fd = -1, .fn = on_line}, .fd = -1, .channel = -1};
}

int line_open(struct line *l, int fd)
{
    int r = fd_set_nonblock(fd, true);

    l->fd = fd;
    if (r == 0)
        loop_watch(&l->agent->loop, &l->src, fd, EPOLLIN);
    return r;
}

void line_done(struct line *l)
{
    loop_unwatch(&l->agent->loop, &l->src);
    close_p(&l->fd);
    close_p(&l->channel);
}

int line_ask(struct line *l)
{
    struct line_message m = {.what = LINE_KERNEL};

    return l->fd < 0 ? -ENOTCONN : ipc_send(l->fd, &m, sizeof(m), NULL, 0);
}

/* If sending fails, the warden has gone, which the loop will report. */
void line_told(struct line *l, enum line_what what, int code)
{
    struct line_message m = {.what = what, .code = code};

    if (l->fd >= 0)
        ipc_send(l->fd, &m, sizeof(m), NULL, 0);
}
