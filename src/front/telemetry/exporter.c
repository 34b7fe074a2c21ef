#include "front/telemetry/exporter.h"

#include <assert.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>

#include "lib/base/fd.h"
#include "lib/ipc/ipc.h"
#include "lib/text/strbuf.h"
#include "front/telemetry/exporter_wire.h"

#define READS_MAX 64 /* answers read in one go, so that other handles get their turn */
#define SEALS     (F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE)

_Static_assert(sizeof(struct exporter_ask) + EXPORTER_URL_MAX + EXPORTER_NAME_MAX +
                       EXPORTER_HEADERS * (EXPORTER_NAME_MAX + HIDDEN_MAX) <=
                   EXPORTER_PACKET_MAX,
               "the largest post fits into a packet");

/* A post that waits for its answer. The slot's number is the lower part of seq, so that an answer
 * finds its slot. */
struct slot {
    uint64_t seq; /* 0: free */
    void (*done)(void *arg, int status, uint64_t retry_after_ms);
    void *arg;
};

/* A socket to an exporter. It lives until the loop has closed its handle. */
struct line {
    uv_poll_t poll;
    struct exporter *exporter; /* NULL: hung up */
    int sock;
};

struct exporter {
    uv_loop_t *loop;
    struct line *line; /* NULL: there is no exporter now */
    uint64_t posts;
    struct slot slots[EXPORTER_POSTS_MAX];
    uint32_t free_slots[EXPORTER_POSTS_MAX], n_free;
};

/* ---- answers --------------------------------------------------------------------------------- */

static void settle(struct exporter *h, struct slot *s, int status, uint64_t retry_after_ms)
{
    struct slot waits = *s;

    s->seq = 0;
    h->free_slots[h->n_free++] = (uint32_t)(s - h->slots);
    waits.done(waits.arg, status, retry_after_ms);
}

static void on_closed(uv_handle_t *handle)
{
    struct line *l = handle->data;

    close_p(&l->sock);
    free(l);
}

static void hang_up(struct exporter *h)
{
    h->line->exporter = NULL;
    uv_close((uv_handle_t *)&h->line->poll, on_closed);
    h->line = NULL;
    for (size_t i = 0; i < EXPORTER_POSTS_MAX; i++)
        if (h->slots[i].seq)
            settle(h, &h->slots[i], -EPIPE, 0);
}

/* 1: took an answer; 0: there is none; or -errno. */
static int take_answer(struct exporter *h)
{
    struct exporter_told told;
    ssize_t got = recv(h->line->sock, &told, sizeof told, MSG_DONTWAIT | MSG_TRUNC);

    if (got < 0)
        return errno == EAGAIN || errno == EINTR ? 0 : -errno;
    if (got != (ssize_t)sizeof told || told.magic != EXPORTER_MAGIC || told.seq == 0)
        return -EPROTO;
    struct slot *s = &h->slots[told.seq % EXPORTER_POSTS_MAX];
    if (s->seq != told.seq)
        return -EPROTO;
    settle(h, s, told.status, told.retry_after_ms);
    return 1;
}

static void on_ready(uv_poll_t *poll, int status, int events)
{
    const struct line *l = poll->data;
    int r = 1;

    (void)status;
    (void)events;
    for (int i = 0; i < READS_MAX && r > 0 && l->exporter; i++)
        r = take_answer(l->exporter);
    if (r < 0 && l->exporter)
        hang_up(l->exporter);
}

struct exporter *exporter_new(uv_loop_t *loop)
{
    struct exporter *h = xcalloc(1, sizeof *h);

    h->loop = loop;
    while (h->n_free < EXPORTER_POSTS_MAX) {
        h->free_slots[h->n_free] = EXPORTER_POSTS_MAX - 1 - h->n_free;
        h->n_free++;
    }
    return h;
}

void exporter_set_socket(struct exporter *h, int sock)
{
    struct line *l = xcalloc(1, sizeof *l);

    if (h->line)
        hang_up(h);
    *l = (struct line){.exporter = h, .sock = sock};
    fd_set_nonblock(sock, true);
    int r = uv_poll_init(h->loop, &l->poll, sock);
    assert(r == 0);
    l->poll.data = l;
    r = uv_poll_start(&l->poll, UV_READABLE, on_ready);
    assert(r == 0);
    h->line = l;
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
static bool write_packet(struct strbuf *out, const struct exporter_post *post, uint64_t seq)
{
    struct exporter_ask ask = {
        .magic = EXPORTER_MAGIC, .n_texts = EXPORTER_TEXTS_MIN, .seq = seq, .len = post->len};
    size_t n = 0;
    bool good = is_web(post->url) && is_line(post->url, EXPORTER_URL_MAX - 1) &&
                is_line(post->content_type, EXPORTER_NAME_MAX - 1);

    while (n < EXPORTER_HEADERS && post->headers[n].name)
        n++;
    ask.n_texts += (uint32_t)(2 * n);
    strbuf_add(out, &ask, sizeof ask);
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

/* Puts the body into a sealed memfd. Returns a descriptor, or -errno. */
static int make_body(const void *body, size_t len)
{
    AUTO(close_p) int fd = memfd_create("herald-body", MFD_CLOEXEC | MFD_ALLOW_SEALING);

    if (fd < 0)
        return -errno;
    int r = fd_write_all(fd, body, len);
    if (r < 0)
        return r;
    return fcntl(fd, F_ADD_SEALS, SEALS) < 0 ? -errno : steal_fd(&fd);
}

static int send_post(struct exporter *h, const struct exporter_post *post, uint64_t seq,
                     struct strbuf *packet)
{
    AUTO(close_p) int fd = -1;

    if (!write_packet(packet, post, seq))
        return -EINVAL;
    fd = make_body(post->body, post->len);
    if (fd < 0)
        return fd;
    return ipc_send(h->line->sock, packet->buf, packet->len, &fd, 1);
}

int exporter_post(struct exporter *h, const struct exporter_post *post)
{
    struct strbuf packet;

    if (post->len > EXPORTER_BODY_MAX)
        return -E2BIG;
    if (!h->line || h->n_free == 0)
        return -EAGAIN;
    uint32_t i = h->free_slots[h->n_free - 1];
    uint64_t seq = (h->posts + 1) * EXPORTER_POSTS_MAX + i;
    strbuf_init(&packet, EXPORTER_PACKET_MAX);
    strbuf_reserve(&packet);
    int r = send_post(h, post, seq, &packet);
    strbuf_wipe(&packet);
    /* If the exporter is gone, reading will find out. */
    if (r < 0)
        return r == -ENOBUFS || r == -ETOOMANYREFS || r == -EPIPE || r == -ECONNRESET ? -EAGAIN : r;
    h->posts++;
    h->n_free--;
    h->slots[i] = (struct slot){.seq = seq, .done = post->done, .arg = post->arg};
    return 0;
}
