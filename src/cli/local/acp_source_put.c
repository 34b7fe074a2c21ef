#include "cli/local/acp_source_put.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#define UNPACK      "/usr/local/lib/sandglass/kernels/acp/unpack.py"
#define MESSAGE_MAX 4096
#define PIPE_SIZE   (1024 * 1024)

/* Exit statuses of unpack.py: see kernels/README.md. */
enum { UNPACK_BAD = 65, UNPACK_NO_ROOM = 73, UNPACK_NO_GIT = 127 };

/* ---- a directory, by a thread ---------------------------------------------------------------- */

struct feeder {
    const struct acp_source *source;
    pthread_t thread;
    int in, out; /* both ends of the pipe; out is the thread's */
    int r;
    struct acp_tar_count count;
    struct sg_error e;
};

static void *feed(void *arg)
{
    struct feeder *f = arg;

    f->r = acp_tar_write(f->source->fd, f->source->path, f->out, &f->count, &f->e);
    close(f->out);
    return NULL;
}

static int feeder_start(struct feeder *f, const struct acp_source *s, struct sg_error *e)
{
    int fds[2], r;

    if (pipe2(fds, O_CLOEXEC) < 0)
        return err_errno(e, "make a pipe");
    fcntl(fds[1], F_SETPIPE_SZ, PIPE_SIZE);
    *f = (struct feeder){.source = s, .in = fds[0], .out = fds[1]};
    r = -pthread_create(&f->thread, NULL, feed, f);
    if (r < 0) {
        close(fds[0]);
        close(fds[1]);
        return err_code(e, r, "start a thread");
    }
    return 0;
}

/* Waits for the thread. 0, or why the directory could not be read. -EPIPE is no error here: the
 * reader stopped before the end of the tar, and reports its own reason. */
static int feeder_join(struct feeder *f, struct acp_tar_count *count, struct sg_error *e)
{
    close(f->in);
    pthread_join(f->thread, NULL);
    *count = f->count;
    if (f->r < 0 && f->r != -EPIPE)
        *e = f->e;
    return f->r == -EPIPE ? 0 : f->r;
}

/* ---- inside ---------------------------------------------------------------------------------- */

static enum acp_source_outcome bad(const struct acp_source *s, struct sg_error *e, const char *why)
{
    err_invalid(e, "the source '%.128s' cannot be used: %.300s", s->path, why);
    return ACP_SOURCE_BAD;
}

/* The last line that unpack.py wrote to standard error, without its end. */
static const char *last_line(struct sg_result *r)
{
    char *text = r->stderr_data ? r->stderr_data : NULL, *line;
    size_t len = r->stderr_len;

    while (len > 0 && text[len - 1] == '\n')
        text[--len] = '\0';
    if (len == 0)
        return "no reason is known";
    line = strrchr(text, '\n');
    return line ? line + 1 : text;
}

static enum acp_source_outcome judge(const struct acp_source *s, struct sg_result *r,
                                     struct sg_error *e)
{
    const char *line = last_line(r);

    if (r->status == SG_STATUS_TIMEOUT) {
        err_set(e, SG_ERR_LIMIT, -ETIMEDOUT, "while the source was put in");
        return ACP_SOURCE_TIMEOUT;
    }
    if (r->exit_code == 0)
        return ACP_SOURCE_DONE;
    if (r->exit_code == UNPACK_BAD)
        return bad(s, e, line);
    if (r->limit != SG_LIMIT_NONE || r->exit_code == UNPACK_NO_ROOM) {
        err_set(e, SG_ERR_LIMIT, -ENOSPC, "the source '%.128s' cannot be put in: %.300s", s->path,
                r->limit != SG_LIMIT_NONE ? r->error_message : line);
        return ACP_SOURCE_NO_ROOM;
    }
    err_set(e, SG_ERR_INTERNAL, -EIO, "the source '%.128s' cannot be put in: %.200s%s", s->path,
            line, r->exit_code == UNPACK_NO_GIT ? "" : " (the program that unpacks it failed)");
    return ACP_SOURCE_BROKEN;
}

static enum acp_source_outcome unpack(const struct acp_source *s, int in,
                                      const struct acp_source_call *call, struct sg_error *e)
{
    const char *argv[] = {
        "/usr/bin/python3", "-I", UNPACK, s->kind == ACP_SOURCE_BUNDLE ? "bundle" : "tar",
        call->into,         NULL};
    struct sg_exec x = SG_EXEC_INIT;
    enum acp_source_outcome outcome;
    struct sg_result result;

    x.argv = argv;
    x.user = call->user;
    x.stdin_fd = in;
    x.timeout_ms = call->timeout_ms;
    x.output_limit = MESSAGE_MAX;
    x.interrupt_fd = call->interrupt_fd;
    if (sg_sandbox_exec(call->sandbox_id, &x, &result, e) < 0)
        return ACP_SOURCE_BROKEN;
    if (strcmp(result.error_message, "interrupted") == 0)
        outcome = ACP_SOURCE_INTERRUPTED;
    else
        outcome = judge(s, &result, e);
    sg_result_free(&result);
    return outcome;
}

enum acp_source_outcome acp_source_put(const struct acp_source *s,
                                       const struct acp_source_call *call,
                                       struct acp_tar_count *count, struct sg_error *e)
{
    enum acp_source_outcome outcome;
    struct feeder feeder;
    struct sg_error why;

    *count = (struct acp_tar_count){0};
    if (s->kind != ACP_SOURCE_DIRECTORY)
        return unpack(s, s->fd, call, e);
    if (feeder_start(&feeder, s, e) < 0)
        return ACP_SOURCE_BROKEN;
    outcome = unpack(s, feeder.in, call, e);
    /* If the directory could not be read, unpack.py saw only a tar that ended too early: the
     * thread's error is the true reason. */
    if (feeder_join(&feeder, count, &why) < 0 && outcome == ACP_SOURCE_BAD)
        return bad(s, e, why.message);
    return outcome;
}
