#include "wire/worker.h"

#include <stdio.h>
#include <sys/socket.h>

#include "lib/base/fd.h"
#include "lib/ipc/ipc.h"

void worker_say(int control, enum worker_what what, const char *message)
{
    struct worker_message m = {.magic = WORKER_MAGIC, .what = what};

    snprintf(m.message, sizeof(m.message), "%.255s", message ? message : "");
    if (control >= 0)
        send(control, &m, sizeof(m), MSG_NOSIGNAL | MSG_DONTWAIT);
}

int worker_take(int control)
{
    AUTO(ipc_fds_close) struct ipc_fds fds = {.max = 1};
    struct worker_message m;
    ssize_t got = ipc_take(control, WORKER_MAGIC, &m, sizeof(m), sizeof(m), &fds);

    if (got == -EAGAIN)
        return -1;
    if (got < 0)
        _exit(got == -EPIPE ? 0 : 1);
    if (m.what == WORKER_BEAT)
        worker_say(control, WORKER_BEAT, NULL);
    if (m.what != WORKER_FRONT || fds.n != 1 || fd_set_nonblock(fds.at[0], true) < 0)
        return -1;
    return steal_fd(&fds.at[0]);
}
