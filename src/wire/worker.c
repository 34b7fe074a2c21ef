#include "wire/worker.h"

#include <stdio.h>
#include <sys/socket.h>

#include "lib/base/fd.h"

void worker_say(int control, enum worker_what what, const char *message)
{
    struct worker_message m = {.magic = WORKER_MAGIC, .what = what};

    snprintf(m.message, sizeof m.message, "%.255s", message ? message : "");
    if (control >= 0)
        send(control, &m, sizeof m, MSG_NOSIGNAL | MSG_DONTWAIT);
}

int worker_take(int control)
{
    AUTO(close_p) int fd = -1;
    struct worker_message m;
    size_t n = 1;
    ssize_t got = fd_recv(control, &m, sizeof m, &fd, &n);

    if (got == -EAGAIN || got == -EINTR)
        return -1;
    if (got != (ssize_t)sizeof m || m.magic != WORKER_MAGIC)
        _exit(got == 0 || got == -ECONNRESET ? 0 : 1);
    if (m.what == WORKER_BEAT)
        worker_say(control, WORKER_BEAT, NULL);
    if (m.what != WORKER_FRONT || n != 1 || fd_set_nonblock(fd, true) < 0)
        return -1;
    return steal_fd(&fd);
}
