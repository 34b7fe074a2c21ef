#include "front/forward/tls_client.h"

#include <arpa/inet.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <string.h>

#define PIECE (16u * 1024) /* the largest TLS record */

struct tls_client {
    const struct tls_client_handlers *h;
    void *arg;
    SSL *ssl;
    BIO *in, *out; /* owned by ssl */
    bool ready;
};

static SSL_CTX *context(void)
{
    static SSL_CTX *ctx;

    if (ctx)
        return ctx;
    ctx = SSL_CTX_new(TLS_client_method());
    if (!ctx || SSL_CTX_set_min_proto_version(ctx, TLS1_2_VERSION) != 1)
        abort(); /* out of memory */
    SSL_CTX_set_verify(ctx, SSL_VERIFY_NONE, NULL);
    SSL_CTX_set_options(ctx, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION);
    SSL_CTX_set_session_cache_mode(ctx, SSL_SESS_CACHE_OFF);
    SSL_CTX_set_mode(ctx, SSL_MODE_RELEASE_BUFFERS);
    return ctx;
}

static void ask_for_name(SSL *ssl, const char *name)
{
    char host[256];
    unsigned char address[sizeof(struct in6_addr)];

    snprintf(host, sizeof(host), "%.*s", (int)strcspn(name, ":"), name);
    if (host[0] != '\0' && host[0] != '[' && inet_pton(AF_INET, host, address) != 1)
        SSL_set_tlsext_host_name(ssl, host);
}

/* Hands over the bytes that OpenSSL wants to send. */
static void give_sealed(struct tls_client *t)
{
    char buf[PIECE];
    int n;

    while ((n = BIO_read(t->out, buf, sizeof(buf))) > 0)
        t->h->on_sealed(t->arg, buf, (size_t)n);
}

struct tls_client *tls_client_new(const char *name, const struct tls_client_handlers *h, void *arg)
{
    static const unsigned char protocols[] = "\x08http/1.1";
    struct tls_client *t = NEW(struct tls_client, .h = h, .arg = arg, .ssl = SSL_new(context()),
                               .in = BIO_new(BIO_s_mem()), .out = BIO_new(BIO_s_mem()));

    if (!t->ssl || !t->in || !t->out)
        abort(); /* out of memory */
    SSL_set_bio(t->ssl, t->in, t->out);
    SSL_set_connect_state(t->ssl);
    ask_for_name(t->ssl, name);
    SSL_set_alpn_protos(t->ssl, protocols, sizeof(protocols) - 1);
    SSL_do_handshake(t->ssl);
    give_sealed(t);
    return t;
}

void tls_client_free(struct tls_client *t)
{
    if (!t)
        return;
    SSL_free(t->ssl);
    free(t);
}

/* Whether OpenSSL's result only means that it needs more bytes. */
static bool may_go_on(struct tls_client *t, int r)
{
    int why = SSL_get_error(t->ssl, r);

    ERR_clear_error();
    return why == SSL_ERROR_WANT_READ || why == SSL_ERROR_WANT_WRITE ||
           why == SSL_ERROR_ZERO_RETURN;
}

static int no_tls(struct sg_error *e)
{
    return err_set(e, SG_ERR_INVALID, -EPROTO, "The server on the port does not speak TLS");
}

int tls_client_feed(struct tls_client *t, const char *p, size_t len, struct sg_error *e)
{
    char buf[PIECE];
    int n;

    if (BIO_write(t->in, p, (int)len) != (int)len)
        return no_tls(e);
    if (!t->ready) {
        n = SSL_do_handshake(t->ssl);
        give_sealed(t);
        if (n != 1)
            return may_go_on(t, n) ? 0 : no_tls(e);
        t->ready = true;
        t->h->on_ready(t->arg);
    }
    while ((n = SSL_read(t->ssl, buf, sizeof(buf))) > 0)
        t->h->on_plain(t->arg, buf, (size_t)n);
    bool ok = may_go_on(t, n);
    give_sealed(t);
    return ok ? 0 : no_tls(e);
}

void tls_client_send(struct tls_client *t, const char *p, size_t len)
{
    while (len > 0) {
        size_t n = len < PIECE ? len : PIECE;
        if (SSL_write(t->ssl, p, (int)n) <= 0) { /* has room: the session is dead */
            ERR_clear_error();
            return;
        }
        give_sealed(t);
        p += n;
        len -= n;
    }
}

void tls_client_close(struct tls_client *t)
{
    SSL_shutdown(t->ssl);
    ERR_clear_error();
    give_sealed(t);
}
