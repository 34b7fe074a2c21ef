/* TLS by OpenSSL: 1.2 and later, no renegotiation, HTTP/1.1 only. */
#include <openssl/err.h>
#include <openssl/pem.h>
#include <sys/socket.h>

#include "lib/http/bio.h"
#include "lib/http/impl.h"

#define CIPHERS_12 "ECDHE+AESGCM:ECDHE+CHACHA20"

/* ---- certificate and key --------------------------------------------------------------------- */

/* OpenSSL's own words for its last error; its queue is left empty. */
static int tls_error(struct sg_error *e, const char *what)
{
    unsigned long code = ERR_peek_last_error();
    const char *reason = ERR_reason_error_string(code);

    ERR_clear_error();
    return err_invalid(e, "%s: %s", what, reason ? reason : "unknown error");
}

/* A key under a password is refused: asking for one would block. */
static int no_password(char *buf UNUSED, int size UNUSED, int writing UNUSED, void *arg UNUSED)
{
    return -1;
}

static int use_chain(SSL_CTX *ctx, BIO *pem)
{
    X509 *cert = PEM_read_bio_X509_AUX(pem, NULL, no_password, NULL);
    int ok = cert && SSL_CTX_use_certificate(ctx, cert) == 1;

    X509_free(cert);
    while (ok && (cert = PEM_read_bio_X509(pem, NULL, no_password, NULL))) {
        ok = SSL_CTX_add0_chain_cert(ctx, cert) == 1;
        if (!ok)
            X509_free(cert);
    }
    /* The end of the file is an error to OpenSSL too. */
    if (ok && ERR_GET_REASON(ERR_peek_last_error()) == PEM_R_NO_START_LINE)
        ERR_clear_error();
    return ok && ERR_peek_last_error() == 0 ? 0 : -EINVAL;
}

static int use_key(SSL_CTX *ctx, BIO *pem)
{
    EVP_PKEY *key = PEM_read_bio_PrivateKey(pem, NULL, no_password, NULL);
    int ok = key && SSL_CTX_use_PrivateKey(ctx, key) == 1;

    EVP_PKEY_free(key);
    return ok ? 0 : -EINVAL;
}

static int with_pem(SSL_CTX *ctx, const char *pem, size_t len, int (*fn)(SSL_CTX *, BIO *))
{
    BIO *bio = len <= INT32_MAX ? BIO_new_mem_buf(pem, (int)len) : NULL;
    int r = bio ? fn(ctx, bio) : -EINVAL;

    BIO_free(bio);
    return r;
}

/* ---- context --------------------------------------------------------------------------------- */

static int choose_protocol(SSL *ssl UNUSED, const unsigned char **out, unsigned char *out_len,
                           const unsigned char *in, unsigned in_len, void *arg UNUSED)
{
    static const unsigned char ours[] = "\x08http/1.1";
    unsigned char *chosen = NULL;

    if (SSL_select_next_proto(&chosen, out_len, ours, sizeof(ours) - 1, in, in_len) !=
        OPENSSL_NPN_NEGOTIATED)
        return SSL_TLSEXT_ERR_ALERT_FATAL;
    *out = chosen;
    return SSL_TLSEXT_ERR_OK;
}

static int new_context(SSL_CTX **ret, struct sg_error *e)
{
    SSL_CTX *ctx = SSL_CTX_new(TLS_server_method());

    ERR_clear_error();
    if (!ctx || SSL_CTX_set_min_proto_version(ctx, TLS1_2_VERSION) != 1 ||
        SSL_CTX_set_cipher_list(ctx, CIPHERS_12) != 1) {
        SSL_CTX_free(ctx);
        return tls_error(e, "set up TLS");
    }
    /* OpenSSL must keep nothing of the bytes it has read, which may be a body_secret. */
    SSL_CTX_set_options(ctx,
                        SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION | SSL_OP_CLEANSE_PLAINTEXT);
    SSL_CTX_set_session_cache_mode(ctx, SSL_SESS_CACHE_OFF);
    /* Idle connections keep no buffers; a write that was refused is repeated from elsewhere. */
    SSL_CTX_set_mode(ctx, SSL_MODE_RELEASE_BUFFERS | SSL_MODE_ENABLE_PARTIAL_WRITE |
                              SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
    SSL_CTX_set_alpn_select_cb(ctx, choose_protocol, NULL);
    *ret = ctx;
    return 0;
}

int tls_context_by_name(int (*show)(SSL *ssl, void *arg), void *arg, SSL_CTX **ret,
                        struct sg_error *e)
{
    int r = new_context(ret, e);

    if (r == 0)
        SSL_CTX_set_cert_cb(*ret, show, arg);
    return r;
}

int tls_context(const char *cert_pem, size_t cert_len, const char *key_pem, size_t key_len,
                SSL_CTX **ret, struct sg_error *e)
{
    SSL_CTX *ctx = NULL;
    int r = new_context(&ctx, e);

    if (r < 0)
        return r;
    if (with_pem(ctx, cert_pem, cert_len, use_chain) < 0)
        r = tls_error(e, "read the TLS certificate (PEM)");
    else if (with_pem(ctx, key_pem, key_len, use_key) < 0)
        r = tls_error(e, "read the TLS key (PEM, without a password)");
    else if (SSL_CTX_check_private_key(ctx) != 1)
        r = tls_error(e, "the TLS key does not belong to the certificate");
    if (r < 0)
        SSL_CTX_free(ctx);
    else
        *ret = ctx;
    return r;
}

/* ---- socket ---------------------------------------------------------------------------------- */

static ssize_t socket_recv(void *arg, void *p, size_t n)
{
    return recv((int)(intptr_t)arg, p, n, MSG_DONTWAIT);
}

static ssize_t socket_send(void *arg, const void *p, size_t n)
{
    return send((int)(intptr_t)arg, p, n, MSG_NOSIGNAL | MSG_DONTWAIT);
}

SSL *tls_open(SSL_CTX *ctx, int fd)
{
    static const struct bio_stream stream = {socket_recv, socket_send};
    SSL *ssl = SSL_new(ctx);
    BIO *bio = ssl ? bio_new(&stream, (void *)(intptr_t)fd) : NULL;

    if (!bio) {
        SSL_free(ssl);
        return NULL;
    }
    SSL_set_bio(ssl, bio, bio);
    SSL_set_accept_state(ssl);
    return ssl;
}

/* ---- bytes ----------------------------------------------------------------------------------- */

int tls_handshake(SSL *ssl, bool *want_write)
{
    ERR_clear_error();
    int r = SSL_do_handshake(ssl);
    if (r == 1)
        return 0;
    int error = SSL_get_error(ssl, r);
    *want_write = error == SSL_ERROR_WANT_WRITE;
    return error == SSL_ERROR_WANT_WRITE || error == SSL_ERROR_WANT_READ ? -EAGAIN : -EPROTO;
}

ssize_t tls_read(SSL *ssl, char *buf, size_t cap, bool *again)
{
    size_t len = 0;
    int error = SSL_ERROR_NONE;

    while (len < cap && error == SSL_ERROR_NONE) {
        size_t n = 0;

        ERR_clear_error();
        int r = SSL_read_ex(ssl, buf + len, cap - len, &n);
        error = r == 1 ? SSL_ERROR_NONE : SSL_get_error(ssl, r);
        len += n;
    }
    /* After a full buffer there may be more inside. The next read tells of the end. */
    *again = error == SSL_ERROR_NONE || (len > 0 && error == SSL_ERROR_ZERO_RETURN);
    if (len > 0)
        return (ssize_t)len;
    if (error == SSL_ERROR_WANT_READ || error == SSL_ERROR_WANT_WRITE)
        return -EAGAIN;
    return error == SSL_ERROR_ZERO_RETURN ? 0 : -EPROTO;
}

ssize_t tls_write(SSL *ssl, const char *p, size_t n)
{
    size_t sent = 0;

    ERR_clear_error();
    int r = SSL_write_ex(ssl, p, n, &sent);
    if (r == 1)
        return (ssize_t)sent;
    int error = SSL_get_error(ssl, r);
    return error == SSL_ERROR_WANT_READ || error == SSL_ERROR_WANT_WRITE ? -EAGAIN : -EPROTO;
}

void tls_shutdown(SSL *ssl)
{
    ERR_clear_error();
    SSL_shutdown(ssl);
    ERR_clear_error();
}
