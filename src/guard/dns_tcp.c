#include "guard/dns_tcp.h"

#include <sys/socket.h>

#include "guard/dns.h"
#include "lib/uv/handle.h"

#define QUESTION_MAX 4096 /* no question is that long */
#define SILENCE_NS   10000000000ull

/* A connection with questions. It handles one at a time: those behind it wait in the socket. */
struct dns_tcp {
    struct sandbox *sandbox;
    int fd;
    uv_poll_t *watch;
    uv_timer_t *timer;
    uint8_t in[2 + QUESTION_MAX];
    size_t in_len;
    struct strbuf out;
    struct dns_pending *pending;
    void (*done)(void *arg, const char *error);
    void *arg;
};

static void on_event(uv_poll_t *w, int status, int events);

void dns_tcp_free(struct dns_tcp *d)
{
    if (d->pending)
        dns_cancel(d->pending);
    watch_drop(&d->watch);
    alarm_drop(&d->timer);
    strbuf_done(&d->out);
    close_p(&d->fd);
    free(d);
}

static void finish(struct dns_tcp *d, const char *error)
{
    void (*done)(void *arg, const char *error_) = d->done;
    void *arg = d->arg;

    dns_tcp_free(d);
    done(arg, error);
}

static void watch(struct dns_tcp *d)
{
    watch_for(d->watch, d->out.len > 0 ? UV_WRITABLE : d->pending ? 0 : UV_READABLE, on_event);
}

static void on_reply(void *arg, const uint8_t *p, size_t len)
{
    struct dns_tcp *d = arg;
    uint8_t head[2] = {(uint8_t)(len >> 8), (uint8_t)len};

    d->pending = NULL;
    strbuf_add(&d->out, head, sizeof(head));
    strbuf_add(&d->out, p, len);
    watch(d);
}

/* Takes a whole question from the buffer and serves it. False: there is none yet. */
static bool take_question(struct dns_tcp *d)
{
    size_t len = d->in_len < 2 ? 0 : (size_t)d->in[0] << 8 | d->in[1];
    uint8_t question[QUESTION_MAX];

    if (d->in_len < 2 || d->in_len < 2 + len)
        return false;
    memcpy(question, d->in + 2, len);
    d->in_len -= 2 + len;
    memmove(d->in, d->in + 2 + len, d->in_len);
    /* NULL: the reply was there at once, or the message is no question and gets none. */
    d->pending = dns_serve(d->sandbox, question, len, true, on_reply, d);
    return true;
}

static void on_silence(uv_timer_t *t)
{
    finish(t->data, NULL);
}

static int flush(struct dns_tcp *d)
{
    ssize_t n = send(d->fd, d->out.buf, d->out.len, MSG_NOSIGNAL);

    if (n < 0)
        return errno == EAGAIN ? 0 : -errno;
    strbuf_consume(&d->out, (size_t)n);
    return 0;
}

static void on_event(uv_poll_t *w, int status UNUSED, int events UNUSED)
{
    struct dns_tcp *d = w->data;
    ssize_t n;

    alarm_set(d->timer, SILENCE_NS, on_silence);
    if (d->out.len > 0) {
        if (flush(d) < 0) {
            finish(d, NULL);
            return;
        }
    } else {
        n = recv(d->fd, d->in + d->in_len, sizeof(d->in) - d->in_len, 0);
        if (n == 0 || (n < 0 && errno != EAGAIN)) {
            finish(d, NULL);
            return;
        }
        d->in_len += n > 0 ? (size_t)n : 0;
        if (d->in_len >= 2 && ((size_t)d->in[0] << 8 | d->in[1]) > QUESTION_MAX) {
            finish(d, "DNS message over TCP is too long");
            return;
        }
    }
    while (!d->pending && d->out.len == 0 && take_question(d))
        ;
    watch(d);
}

struct dns_tcp *dns_tcp_new(struct sandbox *s, int fd, void (*done)(void *arg, const char *error),
                            void *arg)
{
    struct dns_tcp *d = NEW(struct dns_tcp, .sandbox = s, .fd = fd, .done = done, .arg = arg);

    d->watch = watch_new(s->guard->loop, fd, d);
    d->timer = alarm_new(s->guard->loop, d);
    strbuf_init(&d->out, DNS_MESSAGE_MAX + 2);
    alarm_set(d->timer, SILENCE_NS, on_silence);
    watch(d);
    return d;
}
