/* The least that libuv and llhttp can do: parses each request, answers 204. What our own server is
 * compared with. */
#include <llhttp.h>
#include <stdio.h>
#include <stdlib.h>
#include <uv.h>

static const char text[] = "HTTP/1.1 204 No Content\r\nDate: Thu, 01 Jan 1970 00:00:00 GMT\r\n\r\n";
static llhttp_settings_t settings;
static char shared[65536];

struct peer {
    uv_tcp_t tcp;
    llhttp_t parser;
};

static void on_alloc(uv_handle_t *h, size_t size, uv_buf_t *buf)
{
    (void)h, (void)size;
    *buf = uv_buf_init(shared, sizeof(shared));
}

static void on_closed(uv_handle_t *h)
{
    free(h->data);
}

static int on_complete(llhttp_t *parser)
{
    struct peer *p = parser->data;
    uv_buf_t buf = uv_buf_init((char *)(uintptr_t)text, sizeof(text) - 1);

    return uv_try_write((uv_stream_t *)&p->tcp, &buf, 1) < 0 ? -1 : 0;
}

static void on_read(uv_stream_t *stream, ssize_t n, const uv_buf_t *buf)
{
    struct peer *p = stream->data;

    if (n < 0 || llhttp_execute(&p->parser, buf->base, (size_t)n) != HPE_OK)
        uv_close((uv_handle_t *)stream, on_closed);
}

static void on_connection(uv_stream_t *listener, int status)
{
    struct peer *p = calloc(1, sizeof(*p));

    (void)status;
    uv_tcp_init(listener->loop, &p->tcp);
    p->tcp.data = p->parser.data = p;
    uv_accept(listener, (uv_stream_t *)&p->tcp);
    uv_tcp_nodelay(&p->tcp, 1);
    llhttp_init(&p->parser, HTTP_REQUEST, &settings);
    p->parser.data = p;
    uv_read_start((uv_stream_t *)&p->tcp, on_alloc, on_read);
}

int main(void)
{
    uv_tcp_t listener;
    struct sockaddr_in at;
    int len = sizeof(at);

    llhttp_settings_init(&settings);
    settings.on_message_complete = on_complete;
    uv_ip4_addr("127.0.0.1", 0, &at);
    uv_tcp_init(uv_default_loop(), &listener);
    if (uv_tcp_bind(&listener, (struct sockaddr *)&at, 0) < 0 ||
        uv_listen((uv_stream_t *)&listener, 128, on_connection) < 0)
        return 1;
    uv_tcp_getsockname(&listener, (struct sockaddr *)&at, &len);
    printf("%d\n", ntohs(at.sin_port));
    fflush(stdout);
    return uv_run(uv_default_loop(), UV_RUN_DEFAULT);
}
