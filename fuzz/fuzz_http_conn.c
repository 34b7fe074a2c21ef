/* A whole connection over a socket pair. The first byte chooses how the bytes after it are cut and
 * how the client ends; the paths choose what the server's owner does. Whatever comes: every request
 * is closed once, and nothing is left behind. */
#include <assert.h>
#include <fcntl.h>
#include <sys/socket.h>

#include "lib/http/impl.h"

#define TURNS_MAX 200

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static unsigned opened, closed;
static struct http_req *pending;
static char block[100 * 1024];

static void on_close(struct http_req *req)
{
    closed++;
    if (pending == req)
        pending = NULL;
}

static void on_body(struct http_req *req, const char *data, size_t len)
{
    assert(len > 0 && data);
    if (strchr(req->query, 'p'))
        http_body_pause(req);
    if (strchr(req->query, 'e'))
        http_write(req, data, len);
}

static void on_body_end(struct http_req *req)
{
    http_finish(req);
}

static void echo(struct http_req *req, const char *body, size_t len)
{
    http_reply(req, 200, "text/plain", body, len);
}

static void on_request(struct http_req *req)
{
    opened++;
    pending = req;
    req->on_close = on_close;
    req->on_body = on_body;
    req->on_body_end = on_body_end;
    switch (req->path[1]) {
    case 'c':
        http_body_collect(req, 1000, echo);
        break;
    case 's':
        http_start(req, 200, NULL, -1);
        http_body_stream(req);
        break;
    case 't':
        http_take_over(req);
        break;
    case 'b':
        http_start(req, 200, NULL, sizeof(block));
        http_write(req, block, sizeof(block));
        http_finish(req);
        break;
    case 'a':
        http_abort(req);
        break;
    case 'h':
        break;
    default:
        http_reply(req, 404, "text/plain", "no", 2);
    }
}

static void turn(uv_loop_t *loop, int fd)
{
    static char sink[65536];

    uv_run(loop, UV_RUN_NOWAIT);
    while (recv(fd, sink, sizeof(sink), MSG_DONTWAIT) > 0)
        ;
    if (pending)
        http_body_resume(pending);
}

/* Sends in pieces while the server turns. */
static void play(uv_loop_t *loop, int fd, const uint8_t *data, size_t size, size_t step)
{
    for (unsigned i = 0; size > 0 && i < TURNS_MAX; i++) {
        ssize_t n = send(fd, data, size < step ? size : step, MSG_DONTWAIT | MSG_NOSIGNAL);

        if (n > 0) {
            data += n;
            size -= (size_t)n;
        }
        turn(loop, fd);
    }
    for (unsigned i = 0; i < 4; i++)
        turn(loop, fd);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uv_loop_t loop;
    int fds[2];

    if (size == 0)
        return 0;
    opened = closed = 0;
    pending = NULL;
    assert(uv_loop_init(&loop) == 0);
    assert(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fds) == 0);
    struct http_server *s = http_server_new(&loop, NULL, on_request, NULL);
    server_adopt(s, fds[0], HTTP_PLAIN, NULL);
    play(&loop, fds[1], data + 1, size - 1, data[0] & 0x7f ? (data[0] & 0x7f) * 8u : size);
    if (data[0] & 0x80) {
        if (pending)
            http_reply(pending, 200, NULL, "late", 4);
        shutdown(fds[1], SHUT_WR);
        for (unsigned i = 0; i < 4; i++)
            turn(&loop, fds[1]);
    }
    close(fds[1]);
    uv_run(&loop, UV_RUN_NOWAIT);
    http_server_free(s);
    uv_run(&loop, UV_RUN_DEFAULT);
    assert(uv_loop_close(&loop) == 0);
    assert(opened == closed);
    return 0;
}
