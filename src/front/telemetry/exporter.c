#include "front/telemetry/exporter.h"

#include <string.h>

#include "lib/text/strbuf.h"
#include "front/telemetry/exporter_wire.h"
#include "lib/uv/ipc_uv.h"
#include "wire/text_fd.h"

_Static_assert(sizeof(struct exporter_ask) + EXPORTER_URL_MAX + EXPORTER_NAME_MAX +
                       EXPORTER_HEADERS * (EXPORTER_NAME_MAX + HIDDEN_MAX) <=
                   EXPORTER_PACKET_MAX,
               "the largest post fits into a packet");

struct exporter {
    struct ipc_uv ipc;
};

/* ---- answers --------------------------------------------------------------------------------- */

typedef void (*post_done)(void *arg, int status, uint64_t retry_after_ms);

static int on_answer(const struct ipc_call *c, struct ipc_in *in)
{
    const struct exporter_told *told = in->m;

    ((post_done)c->done)(c->arg, told ? told->status : in->r, told ? told->retry_after_ms : 0);
    return 0;
}

static const struct ipc_kind link_kind = {
    .magic = EXPORTER_MAGIC,
    .max = sizeof(struct exporter_told),
    .no_queue = true,
    .calls_max = EXPORTER_POSTS_MAX,
    .answer = on_answer,
};

struct exporter *exporter_new(uv_loop_t *loop)
{
    struct exporter *h = xcalloc(1, sizeof(*h));

    ipc_uv_init(&h->ipc, loop, &link_kind);
    return h;
}

void exporter_set_socket(struct exporter *h, int sock)
{
    ipc_link_open(&h->ipc.link, sock);
}

/* ---- posts ----------------------------------------------------------------------------------- */

static bool is_web(const char *url)
{
    return strncmp(url, "http://", 7) == 0 || strncmp(url, "https://", 8) == 0;
}

/* Whether the text fits on one line: a header must not become two. */
static bool is_line(const char *text, size_t max)
{
    for (size_t i = 0; text[i]; i++)
        if (i >= max || (unsigned char)text[i] < 0x20 || text[i] == 0x7f)
            return false;
    return true;
}

static void add_text(struct strbuf *out, const char *text)
{
    strbuf_add(out, text, strlen(text) + 1);
}

/* False: the post has something that cannot be sent. The caller must wipe `out` in either case. */
static bool write_packet(struct strbuf *out, const struct exporter_post *post)
{
    struct exporter_ask ask = {
        .n_texts = EXPORTER_TEXTS_MIN, .len = post->len, .judged = post->judged};
    size_t n = 0;
    bool good = is_web(post->url) && is_line(post->url, EXPORTER_URL_MAX - 1) &&
                is_line(post->content_type, EXPORTER_NAME_MAX - 1);

    while (n < EXPORTER_HEADERS && post->headers[n].name)
        n++;
    ask.n_texts += (uint32_t)(2 * n);
    strbuf_add(out, &ask, sizeof(ask));
    add_text(out, post->url);
    add_text(out, post->content_type);
    for (size_t i = 0; i < n; i++) {
        const char *value = hidden_reveal(post->headers[i].value);

        good &= is_line(post->headers[i].name, EXPORTER_NAME_MAX - 1) && is_line(value, HIDDEN_MAX);
        add_text(out, post->headers[i].name);
        add_text(out, value);
    }
    return good && !out->truncated;
}

static int call(struct exporter *h, const struct exporter_post *post, struct strbuf *packet)
{
    AUTO(close_p) int fd = -1;

    if (!write_packet(packet, post))
        return -EINVAL;
    fd = text_memfd(post->body, post->len, NULL);
    if (fd < 0)
        return fd;
    return ipc_link_call(
        &h->ipc.link,
        &(struct ipc_out){.head = packet->buf, .len = packet->len, .fds = &fd, .n_fds = 1},
        (void (*)(void))post->done, post->arg);
}

int exporter_post(struct exporter *h, const struct exporter_post *post)
{
    struct strbuf packet = strbuf_upto(EXPORTER_PACKET_MAX);

    if (post->len > EXPORTER_BODY_MAX)
        return -E2BIG;
    if (h->ipc.link.sock < 0 || h->ipc.link.n_open == EXPORTER_POSTS_MAX)
        return -EAGAIN;
    strbuf_reserve(&packet);
    int r = call(h, post, &packet);
    strbuf_wipe(&packet);
    /* If the exporter is gone, reading will find out. */
    return r == -ENOBUFS || r == -ETOOMANYREFS || r == -EPIPE || r == -ECONNRESET ? -EAGAIN : r;
}
