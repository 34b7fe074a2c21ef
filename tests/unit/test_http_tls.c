/* The same server through TLS, with OpenSSL on both sides. */
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>

#include "http_client.h"

static unsigned closed;
static size_t body_bytes;
static char block[64 * 1024];
static size_t left;
static bool plain; /* what comes is not encrypted */

static void on_close(struct http_req *req)
{
    (void)req;
    closed++;
}

static void pour(struct http_req *req)
{
    while (left > 0) {
        size_t n = left < sizeof(block) ? left : sizeof(block);

        left -= n;
        if (!http_write(req, block, n) && left > 0)
            return;
    }
    http_finish(req);
}

static void on_body(struct http_req *req, const char *data, size_t len)
{
    (void)req, (void)data;
    body_bytes += len;
}

static void on_body_end(struct http_req *req)
{
    http_reply(req, 200, NULL, "end", 3);
}

static void on_request(struct http_req *req)
{
    EXPECT(req->tls != plain);
    req->on_close = on_close;
    req->on_writable = pour;
    req->on_body = on_body;
    req->on_body_end = on_body_end;
    if (strcmp(req->path, "/pour") == 0) {
        http_start(req, 200, NULL, (int64_t)left);
        pour(req);
    } else if (strcmp(req->path, "/body") == 0) {
        http_body_stream(req);
    } else if (strcmp(req->path, "/hang") != 0) {
        http_reply(req, 200, NULL, "hello", 5);
    }
}

/* ---- a certificate --------------------------------------------------------------------------- */

struct pair {
    char *cert, *key;
    size_t cert_len, key_len;
};

static char *pem_text(BIO *bio, size_t *ret_len)
{
    char *data;
    long len = BIO_get_mem_data(bio, &data);
    char *copy = xcalloc(1, (size_t)len + 1);

    memcpy(copy, data, (size_t)len);
    *ret_len = (size_t)len;
    BIO_free(bio);
    return copy;
}

static void pair_make(struct pair *p, const char *name, const EVP_CIPHER *cipher)
{
    EVP_PKEY *key = EVP_EC_gen("P-256");
    X509 *x = X509_new();
    BIO *cert_bio = BIO_new(BIO_s_mem()), *key_bio = BIO_new(BIO_s_mem());
    unsigned char password[] = "secret";

    X509_set_version(x, 2);
    ASN1_INTEGER_set(X509_get_serialNumber(x), 1);
    X509_gmtime_adj(X509_getm_notBefore(x), -3600);
    X509_gmtime_adj(X509_getm_notAfter(x), 3600);
    X509_set_pubkey(x, key);
    X509_NAME_add_entry_by_txt(X509_get_subject_name(x), "CN", MBSTRING_ASC,
                               (const unsigned char *)name, -1, -1, 0);
    X509_set_issuer_name(x, X509_get_subject_name(x));
    must(X509_sign(x, key, EVP_sha256()) > 0, "sign the certificate");
    PEM_write_bio_X509(cert_bio, x);
    PEM_write_bio_PrivateKey(key_bio, key, cipher, cipher ? password : NULL, cipher ? 6 : 0, NULL,
                             NULL);
    p->cert = pem_text(cert_bio, &p->cert_len);
    p->key = pem_text(key_bio, &p->key_len);
    X509_free(x);
    EVP_PKEY_free(key);
}

static void pair_done(struct pair *p)
{
    free(p->cert);
    free(p->key);
}

static int set_pair(struct http_server *s, const struct pair *cert, const struct pair *key,
                    struct sg_error *e)
{
    return http_server_set_tls(s, cert->cert, cert->cert_len, key->key, key->key_len, e);
}

/* ---- a client -------------------------------------------------------------------------------- */

static struct host h;
static struct pair pair;
static SSL_CTX *ctx;
static struct client cl;
static SSL *ssl;

static void start_with(const struct http_limits *limits, enum http_security security)
{
    struct sg_error e;

    closed = 0;
    body_bytes = 0;
    must(uv_loop_init(&h.loop) == 0, "uv_loop_init");
    h.server = http_server_new(&h.loop, limits, on_request, NULL);
    EXPECT(http_server_listen(h.server, listen_loopback(&h.addr), security, &e) == -EINVAL);
    pair_make(&pair, "first", NULL);
    EXPECT(set_pair(h.server, &pair, &pair, &e) == 0);
    must(http_server_listen(h.server, listen_loopback(&h.addr), security, &e) == 0, "listen");
    ctx = SSL_CTX_new(TLS_client_method());
}

static void start(void)
{
    start_with(NULL, HTTP_TLS);
}

static void stop(void)
{
    pair_done(&pair);
    SSL_CTX_free(ctx);
    host_close(&h);
}

/* Repeats an operation of the client while the server turns. */
static bool again(int r)
{
    int error = SSL_get_error(ssl, r);

    if (error != SSL_ERROR_WANT_READ && error != SSL_ERROR_WANT_WRITE)
        return false;
    host_turn(&h);
    return true;
}

static bool tls_connect(void)
{
    uint64_t deadline = clock_ns() + WAIT_NS;
    int r;

    client_open(&cl, &h);
    ssl = SSL_new(ctx);
    SSL_set_fd(ssl, cl.fd);
    ERR_clear_error();
    do
        r = SSL_connect(ssl);
    while (r != 1 && clock_ns() < deadline && again(r));
    return r == 1;
}

static void tls_disconnect(void)
{
    SSL_free(ssl);
    ssl = NULL;
    client_close(&cl);
}

static void tls_send(const char *p, size_t n)
{
    uint64_t deadline = clock_ns() + WAIT_NS;

    while (n > 0 && clock_ns() < deadline) {
        int r = SSL_write(ssl, p, (int)(n < 16384 ? n : 16384));
        if (r > 0) {
            p += r;
            n -= (size_t)r;
        } else if (!again(r)) {
            return;
        }
    }
}

static void tls_send_text(const char *text)
{
    tls_send(text, strlen(text));
}

/* Until the text has come, or `bytes`, or the end. */
static bool tls_wait(const char *text, size_t bytes)
{
    uint64_t deadline = clock_ns() + WAIT_NS;
    static char buf[65536];

    while (clock_ns() < deadline) {
        if (text ? client_count(&cl, text) > 0 : cl.got.len >= bytes)
            return true;
        int r = SSL_read(ssl, buf, sizeof(buf));
        if (r > 0)
            strbuf_add(&cl.got, buf, (size_t)r);
        else if (!again(r))
            break;
    }
    return false;
}

#define GET(path) "GET " path " HTTP/1.1\r\nHost: a\r\n\r\n"

TEST(requests)
{
    start();
    EXPECT(tls_connect());
    EXPECT(SSL_version(ssl) == TLS1_3_VERSION);
    tls_send_text(GET("/"));
    EXPECT(tls_wait("\r\n\r\nhello", 0));
    /* Several in one record, and one in several. */
    strbuf_reset(&cl.got);
    tls_send_text(GET("/") GET("/") GET("/"));
    while (client_count(&cl, "hello") < 3 && tls_wait(NULL, cl.got.len + 1))
        ;
    EXPECT(client_count(&cl, "hello") == 3);
    strbuf_reset(&cl.got);
    tls_send_text("GET / HT");
    for (unsigned i = 0; i < 5; i++)
        host_turn(&h);
    tls_send_text("TP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
    EXPECT(tls_wait("hello", 0));
    EXPECT(!tls_wait("never", 0));
    EXPECT(SSL_get_shutdown(ssl) & SSL_RECEIVED_SHUTDOWN);
    tls_disconnect();
    stop();
}

TEST(large_bodies)
{
    const size_t size = 8u << 20;

    for (int version = TLS1_2_VERSION; version <= TLS1_3_VERSION; version++) {
        start();
        SSL_CTX_set_max_proto_version(ctx, version);
        EXPECT(tls_connect());
        EXPECT(SSL_version(ssl) == version);
        left = size;
        tls_send_text(GET("/pour"));
        for (unsigned i = 0; i < 20; i++)
            host_turn(&h);
        EXPECT(left > 0);
        EXPECT(tls_wait(NULL, size) && left == 0);
        EXPECT(tls_wait("\r\n\r\n", 0));
        const char *body = strstr(cl.got.buf, "\r\n\r\n") + 4;
        EXPECT(tls_wait(NULL, size + (size_t)(body - cl.got.buf)));
        body = strstr(cl.got.buf, "\r\n\r\n") + 4;
        bool same = true;
        for (size_t i = 0; i < size; i++)
            same &= body[i] == block[i % sizeof(block)];
        EXPECT(same);

        strbuf_reset(&cl.got);
        tls_send_text("POST /body HTTP/1.1\r\nHost: a\r\nContent-Length: 8388608\r\n\r\n");
        for (size_t i = 0; i < size; i += sizeof(block))
            tls_send(block, sizeof(block));
        EXPECT(tls_wait("end", 0));
        EXPECT(body_bytes == size);
        tls_disconnect();
        stop();
    }
}

TEST(protocols)
{
    static const unsigned char both[] = "\x02h2\x08http/1.1", h2[] = "\x02h2";
    const unsigned char *chosen;
    unsigned len;

    start();
    SSL_CTX_set_alpn_protos(ctx, both, sizeof(both) - 1);
    EXPECT(tls_connect());
    SSL_get0_alpn_selected(ssl, &chosen, &len);
    EXPECT(len == 8 && memcmp(chosen, "http/1.1", 8) == 0);
    tls_disconnect();
    SSL_CTX_set_alpn_protos(ctx, h2, sizeof(h2) - 1);
    EXPECT(!tls_connect());
    tls_disconnect();
    stop();
}

TEST(old_versions_are_refused)
{
    start();
    SSL_CTX_set_security_level(ctx, 0);
    SSL_CTX_set_min_proto_version(ctx, TLS1_VERSION);
    SSL_CTX_set_max_proto_version(ctx, TLS1_1_VERSION);
    EXPECT(!tls_connect());
    tls_disconnect();
    stop();
}

TEST(no_renegotiation)
{
    start();
    SSL_CTX_set_max_proto_version(ctx, TLS1_2_VERSION);
    EXPECT(tls_connect());
    SSL_renegotiate(ssl);
    uint64_t deadline = clock_ns() + WAIT_NS;
    int r;
    do
        r = SSL_do_handshake(ssl);
    while (r != 1 && clock_ns() < deadline && again(r));
    EXPECT(r != 1);
    tls_disconnect();
    stop();
}

TEST(what_is_no_tls)
{
    start();
    client_open(&cl, &h);
    client_send(&cl, GET("/"));
    EXPECT(client_wait_end(&cl));
    EXPECT(client_count(&cl, "HTTP") == 0);
    client_close(&cl);
    WAIT_UNTIL(&h, http_server_connections(h.server) == 0);
    EXPECT(closed == 0);
    stop();
}

/* ---- TLS and plain HTTP on one port ---------------------------------------------------------- */

TEST(the_first_byte_tells)
{
    start_with(NULL, HTTP_EITHER);
    EXPECT(tls_connect());
    tls_send_text(GET("/"));
    EXPECT(tls_wait("\r\n\r\nhello", 0));
    tls_disconnect();

    plain = true;
    client_open(&cl, &h);
    for (unsigned i = 0; i < 5; i++)
        host_turn(&h); /* nothing has come: it may be either */
    client_send(&cl, "G");
    for (unsigned i = 0; i < 5; i++)
        host_turn(&h);
    client_send(&cl, "ET / HTTP/1.1\r\nHost: a\r\n\r\n");
    EXPECT(client_wait(&cl, "\r\n\r\nhello"));
    client_close(&cl);
    plain = false;
    stop();
}

TEST(neither_is_cut_off)
{
    static const char *const wrong[] = {"\x16\x03\x01\xff\xff", "\x16" GET("/"), "\x16"};
    struct http_limits limits = HTTP_LIMITS_DEFAULT;

    limits.head_ms = 300;
    start_with(&limits, HTTP_EITHER);
    for (size_t i = 0; i < ARRAY_SIZE(wrong); i++) {
        client_open(&cl, &h);
        client_send(&cl, wrong[i]);
        EXPECT(client_wait_end(&cl));
        EXPECT(client_count(&cl, "HTTP") == 0);
        client_close(&cl);
    }
    client_open(&cl, &h); /* says nothing at all */
    EXPECT(client_wait_end(&cl));
    client_close(&cl);
    client_open(&cl, &h);
    client_send(&cl, "\x80\r\n\r\n");
    EXPECT(client_wait_end(&cl));
    EXPECT(client_count(&cl, "HTTP/1.1 400 ") == 1);
    client_close(&cl);
    WAIT_UNTIL(&h, http_server_connections(h.server) == 0);
    EXPECT(closed == 0);
    stop();
}

TEST(a_client_that_goes_away)
{
    start();
    EXPECT(tls_connect());
    tls_send_text(GET("/hang"));
    for (unsigned i = 0; i < 5; i++)
        host_turn(&h);
    tls_disconnect();
    WAIT_UNTIL(&h, closed == 1);
    /* In the middle of the handshake. */
    client_open(&cl, &h);
    client_send_bytes(&cl, "\x16\x03\x01\x00\x80", 5);
    WAIT_UNTIL(&h, http_server_connections(h.server) == 1);
    client_close(&cl);
    WAIT_UNTIL(&h, http_server_connections(h.server) == 0);
    stop();
}

static void expect_name(const char *name)
{
    X509 *x = SSL_get1_peer_certificate(ssl);
    char text[64] = "";

    X509_NAME_get_text_by_NID(X509_get_subject_name(x), NID_commonName, text, sizeof(text));
    EXPECT_STR(text, name);
    X509_free(x);
}

TEST(another_certificate_while_running)
{
    struct pair other, locked;
    struct sg_error e;

    start();
    pair_make(&other, "second", NULL);
    pair_make(&locked, "third", EVP_aes_128_cbc());
    EXPECT(tls_connect());
    expect_name("first");
    EXPECT(set_pair(h.server, &other, &other, &e) == 0);
    /* The connection that was there goes on. */
    tls_send_text(GET("/"));
    EXPECT(tls_wait("hello", 0));
    tls_disconnect();
    EXPECT(tls_connect());
    expect_name("second");
    tls_disconnect();
    /* What cannot be used changes nothing. */
    EXPECT(set_pair(h.server, &other, &pair, &e) == -EINVAL && e.message[0]);
    EXPECT(set_pair(h.server, &locked, &locked, &e) == -EINVAL && e.message[0]);
    EXPECT(http_server_set_tls(h.server, "x", 1, "y", 1, &e) == -EINVAL && e.message[0]);
    EXPECT(http_server_set_tls(h.server, other.cert, other.cert_len, "", 0, &e) == -EINVAL);
    EXPECT(tls_connect());
    expect_name("second");
    tls_disconnect();
    pair_done(&other);
    pair_done(&locked);
    stop();
}

TAP_MAIN
