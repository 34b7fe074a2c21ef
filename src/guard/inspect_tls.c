#include "guard/inspect_tls.h"

#include <openssl/err.h>
#include <openssl/x509v3.h>
#include <sys/socket.h>

#include "lib/http/bio.h"

#define PIECE   (16u * 1024) /* as large as a TLS record */
#define OUT_MAX (4u * 1024 * 1024)

/* ---- the socket ------------------------------------------------------------------------------ */

static ssize_t wire_recv(void *arg, void *p, size_t n)
{
    struct side *s = arg;
    ssize_t got;

    if (s->first_at < s->first_len) {
        size_t left = s->first_len - s->first_at;

        n = n < left ? n : left;
        memcpy(p, s->first + s->first_at, n);
        s->first_at += n;
        if (s->first_at == s->first_len)
            free(steal_ptr(&s->first));
        return (ssize_t)n;
    }
    got = recv(s->fd, p, n, MSG_DONTWAIT);
    if (got > 0)
        s->received += (uint64_t)got;
    return got;
}

static ssize_t wire_send(void *arg, const void *p, size_t n)
{
    struct side *s = arg;
    ssize_t sent = send(s->fd, p, n, MSG_NOSIGNAL | MSG_DONTWAIT);

    if (sent > 0)
        s->sent += (uint64_t)sent;
    return sent;
}

/* ---- beginning and end ----------------------------------------------------------------------- */

void side_init(struct side *s, int fd, const void *first, size_t first_len)
{
    *s = (struct side){.fd = fd, .first_len = first_len, .ready = true};
    if (first_len > 0) {
        s->first = xcalloc(1, first_len);
        memcpy(s->first, first, first_len);
    }
    strbuf_init(&s->in, SIDE_IN + PIECE);
    strbuf_init(&s->out, OUT_MAX);
}

void side_start_tls(struct side *s, SSL *ssl)
{
    static const struct bio_stream stream = {wire_recv, wire_send};
    BIO *bio = bio_new(&stream, s);

    if (!bio)
        abort(); /* out of memory */
    SSL_set_bio(ssl, bio, bio);
    s->ssl = ssl;
    s->ready = false;
}

static void drop_out(struct side *s)
{
    if (s->wipe)
        explicit_bzero(s->out.buf, s->out.cap);
    s->wipe = false;
    s->out_at = 0;
    strbuf_reset(&s->out);
}

void side_done(struct side *s)
{
    if (s->fd < 0)
        return;
    drop_out(s);
    SSL_free(steal_ptr(&s->ssl));
    close(steal_fd(&s->fd));
    free(steal_ptr(&s->first));
    strbuf_done(&s->in);
    strbuf_done(&s->out);
    s->in_at = 0;
    s->broken = s->eof = true;
}

void side_cut(struct side *s)
{
    struct linger hard = {.l_onoff = 1};

    if (s->fd >= 0)
        setsockopt(s->fd, SOL_SOCKET, SO_LINGER, &hard, sizeof(hard));
    side_done(s);
}

/* ---- errors ---------------------------------------------------------------------------------- */

static void break_side(struct side *s, const char *why)
{
    s->broken = s->eof = true;
    snprintf(s->why, sizeof(s->why), "%s", why);
    drop_out(s);
}

/* Marks the side as broken with a reason that helps: above all, why a certificate is not
 * believed. */
static void break_tls(struct side *s)
{
    unsigned long code = ERR_peek_last_error();
    const char *reason = ERR_reason_error_string(code);
    long verify = SSL_get_verify_result(s->ssl);

    break_side(s, reason ? reason : s->ready ? "the connection was lost" : "no TLS handshake");
    if (verify != X509_V_OK)
        snprintf(s->why, sizeof(s->why), "its certificate is not valid: %s",
                 X509_verify_cert_error_string(verify));
    ERR_clear_error();
}

/* Handles the error of an OpenSSL call that did not succeed. */
static void heed(struct side *s, int r)
{
    switch (SSL_get_error(s->ssl, r)) {
    case SSL_ERROR_WANT_READ:
        break;
    case SSL_ERROR_WANT_WRITE:
        s->want_write = true;
        break;
    case SSL_ERROR_ZERO_RETURN:
        s->eof = s->clean = true;
        break;
    default:
        /* Many peers end a connection without saying so inside TLS. `clean` stays false, so the
         * caller can judge whether that is an end or a cut. */
        if (s->ready && ERR_GET_REASON(ERR_peek_last_error()) == SSL_R_UNEXPECTED_EOF_WHILE_READING)
            s->eof = true;
        else
            break_tls(s);
    }
    ERR_clear_error();
}

/* ---- bytes ----------------------------------------------------------------------------------- */

bool side_handshake(struct side *s)
{
    int r;

    if (s->ready || s->broken || s->fd < 0)
        return false;
    ERR_clear_error();
    s->want_write = false;
    r = SSL_do_handshake(s->ssl);
    if (r == 1)
        s->ready = true;
    else
        heed(s, r);
    if (s->eof && !s->broken)
        break_side(s, "no TLS handshake");
    return s->ready || s->broken;
}

const char *side_bytes(const struct side *s, size_t *ret_len)
{
    *ret_len = s->in.len - s->in_at;
    return s->in.buf + s->in_at;
}

void side_take(struct side *s, size_t n)
{
    s->in_at += n;
    if (s->in_at == s->in.len) {
        s->in_at = 0;
        strbuf_reset(&s->in);
    }
}

static ssize_t read_tls(struct side *s, char *p, size_t cap)
{
    size_t n = 0;
    int r;

    ERR_clear_error();
    s->want_write = false;
    r = SSL_read_ex(s->ssl, p, cap, &n);
    if (r == 1)
        return (ssize_t)n;
    heed(s, r);
    return -EAGAIN; /* or the connection has ended: see the fields */
}

static ssize_t read_plain(struct side *s, char *p, size_t cap)
{
    ssize_t n = wire_recv(s, p, cap);

    if (n == 0)
        s->eof = s->clean = true;
    else if (n < 0 && errno != EAGAIN && errno != EINTR)
        break_side(s, strerror(errno));
    return n > 0 ? n : -EAGAIN;
}

bool side_fill(struct side *s)
{
    static char piece[PIECE]; /* used by the loop's thread only */
    size_t waits = s->in.len - s->in_at;
    ssize_t n;

    if (!s->ready || s->eof || waits >= SIDE_IN)
        return false;
    n = s->ssl ? read_tls(s, piece, PIECE) : read_plain(s, piece, PIECE);
    if (n > 0) {
        strbuf_consume(&s->in, s->in_at);
        s->in_at = 0;
        strbuf_add(&s->in, piece, (size_t)n);
    }
    return n > 0 || s->eof;
}

static ssize_t write_tls(struct side *s, const char *p, size_t len)
{
    size_t sent = 0;
    int r, why;

    ERR_clear_error();
    r = SSL_write_ex(s->ssl, p, len < PIECE ? len : PIECE, &sent);
    if (r == 1)
        return (ssize_t)sent;
    /* Not heed(): once the peer has ended, a failed write would look like that end. */
    why = SSL_get_error(s->ssl, r);
    if (why == SSL_ERROR_WANT_WRITE)
        s->want_write = true;
    else if (why != SSL_ERROR_WANT_READ)
        break_tls(s);
    ERR_clear_error();
    return -EAGAIN;
}

static ssize_t write_plain(struct side *s, const char *p, size_t len)
{
    ssize_t n = wire_send(s, p, len);

    if (n < 0 && errno != EAGAIN && errno != EINTR)
        break_side(s, strerror(errno));
    return n;
}

bool side_flush(struct side *s)
{
    bool moved = false;

    if (s->ready)
        s->want_write = false;
    while (s->ready && !s->broken && side_pending(s) > 0) {
        const char *p = s->out.buf + s->out_at;
        size_t len = side_pending(s);
        ssize_t n = s->ssl ? write_tls(s, p, len) : write_plain(s, p, len);

        if (n < 0)
            break;
        moved = true;
        s->out_at += (size_t)n;
        if (s->out_at == s->out.len)
            drop_out(s);
    }
    if (s->out_at >= SIDE_HIGH) {
        strbuf_consume(&s->out, s->out_at);
        s->out_at = 0;
    }
    return moved;
}

void side_shut(struct side *s, bool whole)
{
    if (s->fd < 0 || s->broken)
        return;
    if (s->ssl && s->ready && whole) {
        ERR_clear_error();
        SSL_shutdown(s->ssl);
        ERR_clear_error();
    }
    shutdown(s->fd, SHUT_WR);
}

bool side_has_room(const struct side *s)
{
    return side_pending(s) < SIDE_HIGH;
}

size_t side_pending(const struct side *s)
{
    return s->out.len - s->out_at;
}

void side_reserve(struct side *s, size_t n)
{
    size_t waits = side_pending(s), cap = waits + n + 1;
    char *buf;

    if (s->out.cap - s->out.len > n || cap > OUT_MAX)
        return;
    buf = xcalloc(1, cap);
    memcpy(buf, s->out.buf + s->out_at, waits);
    if (s->out.cap > 0) {
        explicit_bzero(s->out.buf, s->out.cap);
        free(s->out.buf);
    }
    s->out.buf = buf;
    s->out.cap = cap;
    s->out.len = waits;
    s->out_at = 0;
}

void side_rest(struct side *s)
{
    if (s->in.len == 0)
        strbuf_done(&s->in);
    if (s->out.len == 0)
        strbuf_done(&s->out);
}
