#include "telemetry/herald.h"

#include <assert.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>

#include "base/fd.h"
#include "base/strbuf.h"
#include "base/sys.h"
#include "telemetry/herald_wire.h"

#define HERALD_FD 3  /* in the herald: the only one beside the standard ones */
#define READS_MAX 64 /* in one go: others have their turn as well */
#define SEALS     (F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE)

_Static_assert(sizeof(struct herald_ask) + HERALD_URL_MAX + HERALD_NAME_MAX +
                       HERALD_HEADERS * (HERALD_NAME_MAX + HIDDEN_MAX) <=
                   HERALD_PACKET_MAX,
               "the largest post fits into a packet");

/* Who waits. A slot's number is the lower part of the seq, so an answer finds it. */
struct slot {
    uint64_t seq; /* 0: free */
    void (*done)(void *arg, int status, uint64_t retry_after_ms);
    void *arg;
};

struct herald {
    struct herald_hooks hooks;
    int sock;
    uv_poll_t poll;
    bool gone;
    uint64_t posts;
    struct slot slots[HERALD_POSTS_MAX];
    uint32_t free_slots[HERALD_POSTS_MAX], n_free;
};

/* ---- the process ------------------------------------------------------------------------------
 */

static _Noreturn void be_herald(int sock, pid_t parent, const struct herald_hooks *hooks)
{
    prctl(PR_SET_NAME, "sandglass-herald");
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent || dup2(sock, HERALD_FD) < 0)
        _exit(1);
    sys_close_range(HERALD_FD + 1, UINT32_MAX, 0);
    signal(SIGPIPE, SIG_IGN);
    herald_process(HERALD_FD, hooks->confine);
}

int herald_start(const struct herald_hooks *hooks, struct herald **ret, struct sg_error *e)
{
    int pair[2];
    pid_t parent = getpid();

    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
        return err_errno(e, "make a socket for the herald");
    pid_t pid = fork();
    if (pid == 0)
        be_herald(pair[1], parent, hooks);
    close(pair[1]);
    if (pid < 0 || fd_set_nonblock(pair[0], true) < 0) {
        close(pair[0]);
        return err_errno(e, "start the herald");
    }
    struct herald *h = xcalloc(1, sizeof *h);
    h->hooks = *hooks;
    h->sock = pair[0];
    while (h->n_free < HERALD_POSTS_MAX) {
        h->free_slots[h->n_free] = HERALD_POSTS_MAX - 1 - h->n_free;
        h->n_free++;
    }
    *ret = h;
    return 0;
}

/* ---- answers ----------------------------------------------------------------------------------
 */

static void settle(struct herald *h, struct slot *s, int status, uint64_t retry_after_ms)
{
    struct slot waits = *s;

    s->seq = 0;
    h->free_slots[h->n_free++] = (uint32_t)(s - h->slots);
    waits.done(waits.arg, status, retry_after_ms);
}

static void herald_gone(struct herald *h)
{
    h->gone = true;
    uv_poll_stop(&h->poll);
    for (size_t i = 0; i < HERALD_POSTS_MAX; i++)
        if (h->slots[i].seq)
            settle(h, &h->slots[i], -EPIPE, 0);
    h->hooks.gone();
}

/* 1, 0 if there is nothing, or -errno. */
static int take_answer(struct herald *h)
{
    struct herald_told told;
    ssize_t got = recv(h->sock, &told, sizeof told, MSG_DONTWAIT | MSG_TRUNC);

    if (got < 0)
        return errno == EAGAIN || errno == EINTR ? 0 : -errno;
    if (got != (ssize_t)sizeof told || told.magic != HERALD_MAGIC || told.seq == 0)
        return -EPROTO;
    struct slot *s = &h->slots[told.seq % HERALD_POSTS_MAX];
    if (s->seq != told.seq)
        return -EPROTO;
    settle(h, s, told.status, told.retry_after_ms);
    return 1;
}

static void on_ready(uv_poll_t *poll, int status, int events)
{
    struct herald *h = poll->data;
    int r = 1;

    (void)status;
    (void)events;
    for (int i = 0; i < READS_MAX && r > 0; i++)
        r = take_answer(h);
    if (r < 0)
        herald_gone(h);
}

void herald_listen(struct herald *h, uv_loop_t *loop)
{
    int r = uv_poll_init(loop, &h->poll, h->sock);

    assert(r == 0);
    h->poll.data = h;
    r = uv_poll_start(&h->poll, UV_READABLE, on_ready);
    assert(r == 0);
}

/* ---- posts ------------------------------------------------------------------------------------
 */

static bool is_web(const char *url)
{
    return strncmp(url, "http://", 7) == 0 || strncmp(url, "https://", 8) == 0;
}

/* A line of a header must stay one. */
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

/* False: it has what cannot be sent. `out` is a packet then that must be wiped all the same. */
static bool write_packet(struct strbuf *out, const struct herald_post *post, uint64_t seq)
{
    struct herald_ask ask = {
        .magic = HERALD_MAGIC, .n_texts = HERALD_TEXTS_MIN, .seq = seq, .len = post->len};
    size_t n = 0;
    bool good = is_web(post->url) && is_line(post->url, HERALD_URL_MAX - 1) &&
                is_line(post->content_type, HERALD_NAME_MAX - 1);

    while (n < HERALD_HEADERS && post->headers[n].name)
        n++;
    ask.n_texts += (uint32_t)(2 * n);
    strbuf_add(out, &ask, sizeof ask);
    add_text(out, post->url);
    add_text(out, post->content_type);
    for (size_t i = 0; i < n; i++) {
        const char *value = hidden_reveal(post->headers[i].value);

        good &= is_line(post->headers[i].name, HERALD_NAME_MAX - 1) && is_line(value, HIDDEN_MAX);
        add_text(out, post->headers[i].name);
        add_text(out, value);
    }
    return good && !out->truncated;
}

/* A descriptor, or -errno. */
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

static int send_post(struct herald *h, const struct herald_post *post, uint64_t seq,
                     struct strbuf *packet)
{
    AUTO(close_p) int fd = -1;

    if (!write_packet(packet, post, seq))
        return -EINVAL;
    fd = make_body(post->body, post->len);
    if (fd < 0)
        return fd;
    return fd_send(h->sock, packet->buf, packet->len, &fd, 1);
}

int herald_post(struct herald *h, const struct herald_post *post)
{
    struct strbuf packet;

    if (post->len > HERALD_BODY_MAX)
        return -E2BIG;
    if (h->gone)
        return -EPIPE;
    if (h->n_free == 0)
        return -EAGAIN;
    uint32_t i = h->free_slots[h->n_free - 1];
    uint64_t seq = (h->posts + 1) * HERALD_POSTS_MAX + i;
    strbuf_init(&packet, HERALD_PACKET_MAX);
    strbuf_reserve(&packet);
    int r = send_post(h, post, seq, &packet);
    strbuf_wipe(&packet);
    if (r < 0)
        return r == -ENOBUFS || r == -ETOOMANYREFS ? -EAGAIN : r;
    h->posts++;
    h->n_free--;
    h->slots[i] = (struct slot){.seq = seq, .done = post->done, .arg = post->arg};
    return 0;
}
