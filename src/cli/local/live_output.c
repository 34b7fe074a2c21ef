#include "cli/local/live_output.h"

#include <limits.h>
#include <poll.h>
#include <signal.h>

#include "lib/base/clock.h"

void live_output_init(struct live_output *o, int signal_fd, uint64_t timeout_ms)
{
    *o = (struct live_output){.signal_fd = signal_fd,
                              .deadline_ns = clock_ns() + timeout_ms * 1000000};
    for (size_t i = 0; i < ARRAY_SIZE(o->late); i++)
        strbuf_init(&o->late[i], SIZE_MAX / 2);
}

/* 1: fd takes at least PIPE_BUF bytes without blocking; 0: a signal or the deadline came first. */
static int wait_writable(const struct live_output *o, int fd, bool until_deadline)
{
    struct pollfd p[] = {{.fd = fd, .events = POLLOUT}, {.fd = o->signal_fd, .events = POLLIN}};

    for (;;) {
        int n = poll(p, ARRAY_SIZE(p), until_deadline ? clock_poll_ms(o->deadline_ns) : -1);

        if (n < 0 && errno == EINTR)
            continue;
        /* An error on fd counts as writable: write(2) then says which. */
        return n > 0 && p[0].revents != 0;
    }
}

/* Ends the run as a signal would: raises one, which the library sees on signal_fd. */
static void give_up(struct live_output *o, int err)
{
    o->gone = true;
    o->error = err;
    raise(SIGTERM);
}

/* Returns how much was written; less than len when a signal or the deadline came first. */
static size_t write_some(struct live_output *o, int fd, const char *data, size_t len,
                         bool until_deadline)
{
    size_t done = 0;

    while (done < len && !o->gone && wait_writable(o, fd, until_deadline)) {
        size_t piece = len - done < PIPE_BUF ? len - done : PIPE_BUF;
        ssize_t n = write(fd, data + done, piece);

        if (n >= 0)
            done += (size_t)n;
        else if (errno != EINTR && errno != EAGAIN)
            give_up(o, errno);
    }
    return done;
}

void live_output_write(void *arg, enum sg_stream stream, const void *data, size_t len)
{
    struct live_output *o = arg;
    int fd = stream == SG_STDERR ? STDERR_FILENO : STDOUT_FILENO;
    struct strbuf *late = &o->late[stream == SG_STDERR];
    size_t done = 0;

    if (o->gone)
        return;
    if (late->len == 0)
        done = write_some(o, fd, data, len, true);
    strbuf_add(late, (const char *)data + done, len - done);
}

void live_output_done(struct live_output *o)
{
    for (size_t i = 0; i < ARRAY_SIZE(o->late); i++) {
        write_some(o, i ? STDERR_FILENO : STDOUT_FILENO, o->late[i].buf, o->late[i].len, false);
        strbuf_done(&o->late[i]);
    }
}
