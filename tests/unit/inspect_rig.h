/* An inspected connection with both of its ends in this process: a client in the sandbox's place
 * and a server, each in a thread of its own with blocking sockets, and the guard's side between
 * them in the loop of the main thread. */
#pragma once

#include <openssl/err.h>
#include <openssl/pem.h>
#include <pthread.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/time.h>

#include "lib/base/err.h"
#include "lib/text/strbuf.h"
#include "guard/ca.h"
#include "guard/identity.h"
#include "guard/inspect_impl.h"
#include "tap.h"
#include "lib/vault/vault.h"

#define RIG_SANDBOX "abcdefghij0123456789"
#define RIG_TENANT  "tenant00000000000000"
#define RIG_TEXT    (1024u * 1024)
#define RIG_TIMEOUT 10 /* seconds that an end waits for bytes */

/* ---- what the guard's other files would do --------------------------------------------------- */

static struct strbuf rig_records; /* "kind allow|deny name detail rule\n" */

void record_decision(struct sandbox *s, const struct decision *d)
{
    (void)s;
    strbuf_addf(&rig_records, "%s %s %s [%s] (%s)\n", d->kind, d->allowed ? "allow" : "deny",
                d->name ? d->name : "-", d->detail ? d->detail : "", d->rule ? d->rule : "");
}

struct sandbox *sandbox_ref(struct sandbox *s)
{
    s->refs++;
    return s;
}

void sandbox_unref(struct sandbox *s)
{
    s->refs--;
}

static void rig_must(bool ok, const char *what)
{
    if (ok)
        return;
    fprintf(stderr, "%s: %s\n", what, ERR_reason_error_string(ERR_peek_last_error()));
    abort();
}

/* ---- an end: blocking ------------------------------------------------------------------------ */

struct rig_end {
    int fd;
    SSL_CTX *ctx;
    SSL *ssl;          /* NULL: plain */
    bool shaken;       /* its handshake went well */
    struct strbuf got; /* that has come and was not taken */
    struct strbuf log; /* for the test to look at afterwards */
    void (*fn)(struct rig_end *end);
};

static void rig_send_bytes(struct rig_end *e, const char *p, size_t len)
{
    while (len > 0) {
        int n = e->ssl ? SSL_write(e->ssl, p, (int)(len < 16384 ? len : 16384))
                       : (int)send(e->fd, p, len, MSG_NOSIGNAL);
        if (n <= 0)
            return;
        p += n;
        len -= (size_t)n;
    }
}

static void rig_send(struct rig_end *e, const char *text)
{
    rig_send_bytes(e, text, strlen(text));
}

/* False: no more comes. */
static bool rig_more(struct rig_end *e)
{
    char buf[16384];
    int n = e->ssl ? SSL_read(e->ssl, buf, sizeof(buf)) : (int)recv(e->fd, buf, sizeof(buf), 0);

    if (n <= 0)
        return false;
    strbuf_add(&e->got, buf, (size_t)n);
    return true;
}

/* Waits for bytes up to the end of `text`, and moves them to the log. */
static bool rig_expect(struct rig_end *e, const char *text)
{
    for (;;) {
        const char *at = memmem(e->got.buf, e->got.len, text, strlen(text));
        if (at) {
            size_t n = (size_t)(at - e->got.buf) + strlen(text);
            strbuf_add(&e->log, e->got.buf, n);
            strbuf_consume(&e->got, n);
            return true;
        }
        if (!rig_more(e))
            break;
    }
    strbuf_add(&e->log, e->got.buf, e->got.len);
    strbuf_reset(&e->got);
    return false;
}

static void rig_expect_head(struct rig_end *e)
{
    rig_expect(e, "\r\n\r\n");
}

/* Everything up to the end of the connection. */
static void rig_rest(struct rig_end *e)
{
    while (rig_more(e))
        ;
    strbuf_add(&e->log, e->got.buf, e->got.len);
    strbuf_reset(&e->got);
}

static void *rig_thread(void *arg)
{
    struct rig_end *e = arg;
    struct timeval limit = {.tv_sec = RIG_TIMEOUT};

    setsockopt(e->fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
    setsockopt(e->fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit));
    if (e->ssl)
        SSL_set_fd(e->ssl, e->fd);
    e->shaken = !e->ssl || SSL_do_handshake(e->ssl) == 1;
    if (e->shaken)
        e->fn(e);
    if (e->ssl && e->shaken)
        SSL_shutdown(e->ssl);
    shutdown(e->fd, SHUT_RDWR);
    ERR_clear_error();
    return NULL;
}

/* ---- the rig --------------------------------------------------------------------------------- */

struct rig {
    const char *name;     /* of the connection */
    const char *document; /* the policy: members after tenant and sandbox */
    bool plain;
    bool untrusted;          /* the client does not have the sandbox's CA */
    bool unknown_server;     /* the guard does not have the server's root */
    const char *server_name; /* in its certificate; NULL: the name */
    void (*client)(struct rig_end *end);
    void (*server)(struct rig_end *end);
    uint64_t first_byte_ms;      /* 0: as always */
    void (*then)(struct rig *r); /* called by the loop once, when it runs */
    /* Results. */
    struct rig_end c, s;
    struct inspect *inspect;
    bool done;
    char error[256];
    uint64_t up, down, counted_up, counted_down;
    struct guard *guard;
};

static struct guard rig_guard;
static uv_loop_t rig_loop;
static EVP_PKEY *rig_root_key;
static X509 *rig_root;

static char *rig_pem(X509 *x, size_t *ret_len)
{
    BIO *bio = BIO_new(BIO_s_mem());
    char *data, *copy;
    long len;

    PEM_write_bio_X509(bio, x);
    len = BIO_get_mem_data(bio, &data);
    copy = xcalloc(1, (size_t)len + 1);
    memcpy(copy, data, (size_t)len);
    *ret_len = (size_t)len;
    BIO_free(bio);
    return copy;
}

static void rig_open(const struct rig *r)
{
    struct guard *g = &rig_guard;

    signal(SIGPIPE, SIG_IGN); /* OpenSSL's sockets raise it */
    strbuf_init(&rig_records, RIG_TEXT);
    rig_must(uv_loop_init(&rig_loop) == 0, "uv_loop_init");
    *g = (struct guard){.loop = &rig_loop, .dir = -1, .key = vault_key_new()};
    rig_root_key = EVP_EC_gen("P-256");
    rig_root = certificate_make(&(struct certificate_spec){.common_name = "the world's",
                                                           .key = rig_root_key,
                                                           .issuer_key = rig_root_key,
                                                           .from_s = -60,
                                                           .to_s = 3600},
                                NULL);
    rig_must(rig_root, "root");
    if (!r->unknown_server)
        g->roots_pem = rig_pem(rig_root, &g->roots_len);
}

static void rig_close(void)
{
    struct guard *g = &rig_guard;

    ca_free(g->ca);
    vault_key_free(g->key);
    if (g->sanitiser)
        sanitiser_free(g->sanitiser);
    free(g->sanitised);
    free(g->roots_pem);
    X509_free(rig_root);
    EVP_PKEY_free(rig_root_key);
    works_free(g->works);
    uv_run(&rig_loop, UV_RUN_DEFAULT);
    rig_must(uv_loop_close(&rig_loop) == 0, "something is left in the loop");
}

/* "sealed": "..." of a secret of the tenant's. */
static const char *rig_sealed(const char *name, const char *value)
{
    static char text[4][4096];
    static unsigned next;
    uint8_t public[VAULT_PUBLIC_LEN];
    AUTO(strbuf_done) struct strbuf out = {0};
    char purpose[128], *ret = text[next++ % 4];

    strbuf_init(&out, VAULT_SEALED_MAX);
    vault_key_public(rig_guard.key, public);
    snprintf(purpose, sizeof(purpose), RIG_TENANT "/%s", name);
    rig_must(vault_seal(public, purpose, value, strlen(value), &out, NULL) == 0, "seal");
    snprintf(ret, sizeof(text[0]), "\"sealed\":\"%s\"", out.buf);
    return ret;
}

static struct policy *rig_policy(const char *members)
{
    AUTO(strbuf_done) struct strbuf text = {0};
    struct policy *p = NULL;
    struct sg_error e = {0};

    strbuf_init(&text, RIG_TEXT);
    strbuf_addf(&text,
                "{\"tenant\":\"" RIG_TENANT "\",\"sandbox\":\"" RIG_SANDBOX
                "\",\"default\":\"allow\"%s,%s}",
                strstr(members, "sanitise") ? "" : ",\"sanitise\":\"off\"", members);
    if (policy_parse(text.buf, text.len, rig_guard.key, &p, &e) < 0) {
        fprintf(stderr, "policy: %s\n", e.message);
        abort();
    }
    return p;
}

static void rig_server_tls(struct rig *r)
{
    const char *names[] = {r->server_name ? r->server_name : r->name};
    EVP_PKEY *key = EVP_EC_gen("P-256");
    X509 *x = certificate_make(&(struct certificate_spec){.common_name = "server",
                                                          .key = key,
                                                          .issuer = rig_root,
                                                          .issuer_key = rig_root_key,
                                                          .from_s = -60,
                                                          .to_s = 3600,
                                                          .path = -1,
                                                          .names = names,
                                                          .n_names = 1},
                               NULL);

    r->s.ctx = SSL_CTX_new(TLS_server_method());
    rig_must(SSL_CTX_use_certificate(r->s.ctx, x) == 1 &&
                 SSL_CTX_use_PrivateKey(r->s.ctx, key) == 1,
             "server's certificate");
    r->s.ssl = SSL_new(r->s.ctx);
    SSL_set_accept_state(r->s.ssl);
    X509_free(x);
    EVP_PKEY_free(key);
}

static void rig_client_tls(struct rig *r)
{
    AUTO(strbuf_done) struct strbuf pem = {0};
    const char *names[] = {r->name};
    char hash[16];
    struct sg_error e = {0};

    strbuf_init(&pem, RIG_TEXT);
    r->c.ctx = SSL_CTX_new(TLS_client_method());
    SSL_CTX_set_verify(r->c.ctx, SSL_VERIFY_PEER, NULL);
    if (!rig_guard.ca)
        rig_must(ca_new(&rig_guard, -1, &rig_guard.ca, &e) == 0, e.message);
    rig_must(ca_certificate(rig_guard.ca, RIG_SANDBOX, names, 1, &pem, hash, &e) == 0, e.message);
    BIO *bio = BIO_new_mem_buf(pem.buf, (int)pem.len);
    X509 *x = PEM_read_bio_X509(bio, NULL, NULL, NULL);
    if (!r->untrusted)
        X509_STORE_add_cert(SSL_CTX_get_cert_store(r->c.ctx), x);
    X509_free(x);
    BIO_free(bio);
    char host[256];
    snprintf(host, sizeof(host), "%s", r->name);
    r->c.ssl = SSL_new(r->c.ctx);
    SSL_set_tlsext_host_name(r->c.ssl, host);
    SSL_set1_host(r->c.ssl, host);
    SSL_set_connect_state(r->c.ssl);
}

static void rig_on_done(void *arg, const struct inspect_done *d)
{
    struct rig *r = arg;

    r->done = true;
    r->up = d->up;
    r->down = d->down;
    snprintf(r->error, sizeof(r->error), "%s", d->error ? d->error : "");
}

static void rig_on_count(void *arg, uint64_t up, uint64_t down)
{
    struct rig *r = arg;

    r->counted_up += up;
    r->counted_down += down;
}

static void rig_end_open(struct rig_end *e, int fd, void (*fn)(struct rig_end *))
{
    *e = (struct rig_end){.fd = fd, .fn = fn};
    strbuf_init(&e->got, 64 * RIG_TEXT);
    strbuf_init(&e->log, 64 * RIG_TEXT);
}

/* The log stays until rig_done. */
static void rig_end_close(struct rig_end *e)
{
    SSL_free(e->ssl);
    SSL_CTX_free(e->ctx);
    close(e->fd);
    strbuf_done(&e->got);
}

static void rig_play(struct rig *r)
{
    struct sandbox sandbox = {
        .guard = &rig_guard, .id = RIG_SANDBOX, .tenant = RIG_TENANT, .refs = 1};
    struct policy *policy = rig_policy(r->document);
    pthread_t client, server;
    int c[2], s[2];
    char first[PIPE_BUF];
    ssize_t n;

    rig_must(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, c) == 0 &&
                 socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, s) == 0,
             "socketpair");
    rig_end_open(&r->c, c[0], r->client);
    rig_end_open(&r->s, s[0], r->server);
    if (!r->plain) {
        rig_client_tls(r);
        rig_server_tls(r);
    }
    rig_must(pthread_create(&client, NULL, rig_thread, &r->c) == 0 &&
                 pthread_create(&server, NULL, rig_thread, &r->s) == 0,
             "pthread_create");
    n = recv(c[1], first, sizeof(first), 0);
    r->inspect = inspect_new(&(struct inspect_order){.sandbox = &sandbox,
                                                     .policy = policy,
                                                     .name = r->name,
                                                     .port = r->plain ? 80 : 443,
                                                     .tls = !r->plain,
                                                     .sandbox_fd = c[1],
                                                     .server_fd = s[1],
                                                     .first = first,
                                                     .first_len = n > 0 ? (size_t)n : 0,
                                                     .done = rig_on_done,
                                                     .count = rig_on_count,
                                                     .arg = r});
    if (r->first_byte_ms)
        r->inspect->first_byte_ms = r->first_byte_ms;
    policy_unref(policy);
    while (!r->done) {
        uv_run(&rig_loop, r->then ? UV_RUN_NOWAIT : UV_RUN_ONCE);
        if (r->then && !r->done)
            r->then(r);
    }
    uv_run(&rig_loop, UV_RUN_DEFAULT);
    pthread_join(client, NULL);
    pthread_join(server, NULL);
    rig_end_close(&r->c);
    rig_end_close(&r->s);
    identity_unref(sandbox.identity);
    EXPECT(sandbox.refs == 1);
    EXPECT(r->counted_up == r->up && r->counted_down == r->down);
}

static void rig_done(struct rig *r)
{
    strbuf_done(&r->c.log);
    strbuf_done(&r->s.log);
    strbuf_done(&rig_records);
    rig_close();
}
