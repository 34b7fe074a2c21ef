#include "cli/client/exec_output.h"

#include <limits.h>

/* One whole message of the stream may arrive on top of the high mark. */
#define PENDING_MAX (EXEC_OUTPUT_HIGH + 32u * 1024 * 1024)

void exec_output_init(struct exec_output *o, int fd)
{
    *o = (struct exec_output){.fd = fd};
    strbuf_init(&o->pending, PENDING_MAX);
}

void exec_output_done(struct exec_output *o)
{
    strbuf_done(&o->pending);
}

size_t exec_output_left(const struct exec_output *o)
{
    return o->pending.len - o->written;
}

static bool takes_more(int fd)
{
    struct pollfd p = {.fd = fd, .events = POLLOUT};

    /* An error on fd counts as writable: write(2) then says which. */
    return poll(&p, 1, 0) > 0 && p.revents != 0;
}

void exec_output_flush(struct exec_output *o)
{
    while (!o->error && exec_output_left(o) > 0 && takes_more(o->fd)) {
        /* A pipe that is writable takes at least PIPE_BUF bytes without blocking. */
        size_t piece = exec_output_left(o) < PIPE_BUF ? exec_output_left(o) : PIPE_BUF;
        ssize_t n = write(o->fd, o->pending.buf + o->written, piece);

        if (n >= 0)
            o->written += (size_t)n;
        else if (errno != EINTR && errno != EAGAIN)
            o->error = errno;
    }
    if (o->error || exec_output_left(o) == 0) {
        strbuf_reset(&o->pending);
        o->written = 0;
    } else if (o->written > EXEC_OUTPUT_HIGH) {
        /* The reader keeps up but the buffer never becomes empty: drop the part that has been
         * written. */
        strbuf_consume(&o->pending, o->written);
        o->written = 0;
    }
}
