#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

#include "lib/base/clock.h"
#include "guard/ca.h"
#include "guard/policy.h"

#define CIPHERS_12   "ECDHE+AESGCM:ECDHE+CHACHA20"
#define HOUR         3600l
#define DAY          (24 * HOUR)
#define LEAF_USED_MS (12 * HOUR * 1000) /* used for half its day: a late connection has time */

static const unsigned char protocols[] = "\x08http/1.1";

/* Files in which systems keep the roots that they trust. A directory would not do: OpenSSL would
 * read it during handshakes, when no file can be opened any more. */
static const char *const roots_files[] = {
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/ca-bundle.pem",
    "/etc/ssl/cert.pem",
};

/* ---- contexts -------------------------------------------------------------------------------- */

static int choose_protocol(SSL *ssl UNUSED, const unsigned char **out, unsigned char *out_len,
                           const unsigned char *in, unsigned in_len, void *arg UNUSED)
{
    unsigned char *chosen = NULL;

    if (SSL_select_next_proto(&chosen, out_len, protocols, sizeof(protocols) - 1, in, in_len) !=
        OPENSSL_NPN_NEGOTIATED)
        return SSL_TLSEXT_ERR_ALERT_FATAL;
    *out = chosen;
    return SSL_TLSEXT_ERR_OK;
}

/* Refuses another name than the one that was judged: a second ClientHello could ask for one. */
static int check_name(SSL *ssl, int *alert, void *arg UNUSED)
{
    const char *asked = SSL_get_servername(ssl, TLSEXT_NAMETYPE_host_name);
    const char *name = SSL_get_app_data(ssl);
    char normal[POLICY_NAME_MAX + 1];

    if (!asked)
        return SSL_TLSEXT_ERR_NOACK;
    if (name_normalise(asked, strlen(asked), normal) == 0 && strcmp(normal, name) == 0)
        return SSL_TLSEXT_ERR_OK;
    *alert = SSL_AD_UNRECOGNIZED_NAME;
    return SSL_TLSEXT_ERR_ALERT_FATAL;
}

static SSL_CTX *context_new(const SSL_METHOD *method)
{
    SSL_CTX *ctx = SSL_CTX_new(method);

    if (!ctx || SSL_CTX_set_min_proto_version(ctx, TLS1_2_VERSION) != 1 ||
        SSL_CTX_set_cipher_list(ctx, CIPHERS_12) != 1) {
        SSL_CTX_free(ctx);
        return NULL;
    }
    SSL_CTX_set_options(ctx, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION | SSL_OP_NO_TICKET);
    SSL_CTX_set_session_cache_mode(ctx, SSL_SESS_CACHE_OFF);
    SSL_CTX_set_num_tickets(ctx, 0);
    /* Idle connections keep no buffers; a write that did not succeed may be repeated from another
     * address. */
    SSL_CTX_set_mode(ctx, SSL_MODE_RELEASE_BUFFERS | SSL_MODE_ENABLE_PARTIAL_WRITE |
                              SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
    return ctx;
}

static int add_roots(X509_STORE *store, const char *pem, size_t len, struct sg_error *e)
{
    BIO *bio = len <= INT32_MAX ? BIO_new_mem_buf(pem, (int)len) : NULL;
    X509 *x = NULL;
    bool ok = bio;

    while (ok && (x = PEM_read_bio_X509(bio, NULL, NULL, NULL))) {
        ok = X509_STORE_add_cert(store, x) == 1;
        X509_free(x);
    }
    BIO_free(bio);
    /* OpenSSL reports the end of the text as an error too. */
    if (ok && ERR_GET_REASON(ERR_peek_last_error()) == PEM_R_NO_START_LINE)
        ERR_clear_error();
    return ok && ERR_peek_last_error() == 0 ? 0 : certificate_error(e, "read egress_roots (PEM)");
}

static int trust_roots(SSL_CTX *ctx, const char *pem, size_t len, struct sg_error *e)
{
    for (size_t i = 0; i < ARRAY_SIZE(roots_files); i++)
        if (SSL_CTX_load_verify_file(ctx, roots_files[i]) == 1)
            break;
    ERR_clear_error(); /* without roots of the system, those of the settings count */
    return len > 0 ? add_roots(SSL_CTX_get_cert_store(ctx), pem, len, e) : 0;
}

/* Makes the context anew if the roots have changed; the old one stays if that fails. */
static int server_context(struct ca *ca, struct sg_error *e)
{
    const struct guard *g = ca->guard;
    size_t len = g->roots_pem ? g->roots_len : 0;
    SSL_CTX *ctx;
    int r;

    if (ca->server && ca->roots_len == len &&
        (len == 0 || memcmp(ca->roots, g->roots_pem, len) == 0))
        return 0;
    ctx = context_new(TLS_client_method());
    if (!ctx || SSL_CTX_set_alpn_protos(ctx, protocols, sizeof(protocols) - 1) != 0)
        r = certificate_error(e, "set up TLS");
    else
        r = trust_roots(ctx, g->roots_pem, len, e);
    if (r < 0) {
        SSL_CTX_free(ctx);
        return r;
    }
    SSL_CTX_set_verify(ctx, SSL_VERIFY_PEER, NULL);
    SSL_CTX_free(ca->server);
    free(ca->roots);
    ca->server = ctx;
    ca->roots = xcalloc(1, len + 1);
    ca->roots_len = len;
    if (len > 0)
        memcpy(ca->roots, g->roots_pem, len);
    return 0;
}

int ca_contexts(struct ca *ca, struct sg_error *e)
{
    ca->leaf_key = EVP_EC_gen("P-256");
    ca->client = context_new(TLS_server_method());
    if (!ca->leaf_key || !ca->client)
        return certificate_error(e, "set up TLS");
    SSL_CTX_set_alpn_select_cb(ca->client, choose_protocol, NULL);
    SSL_CTX_set_tlsext_servername_callback(ca->client, check_name);
    return server_context(ca, e);
}

static void leaf_done(struct ca_leaf *l)
{
    X509_free(l->cert);
    sk_X509_pop_free(l->chain, X509_free);
    *l = (struct ca_leaf){0};
}

void ca_contexts_done(struct ca *ca)
{
    for (size_t i = 0; i < CA_LEAVES; i++)
        leaf_done(&ca->leaves[i]);
    SSL_CTX_free(ca->client);
    SSL_CTX_free(ca->server);
    EVP_PKEY_free(ca->leaf_key);
    free(ca->roots);
}

/* ---- leaves ---------------------------------------------------------------------------------- */

static int mint(struct ca *ca, struct ca_leaf *l, struct sg_error *e)
{
    const char *names[] = {l->name};
    char common_name[64];
    EVP_PKEY *key = ca_sandbox_key(ca, l->sandbox, e);
    X509 *sandbox = NULL;

    ca_sandbox_name(l->sandbox, common_name);
    if (key)
        sandbox = CERTIFICATE(e, .common_name = common_name, .key = key, .issuer = ca->root.cert,
                              .issuer_key = ca->root.key, .from_s = -DAY, .to_s = 7 * DAY,
                              .names = names, .n_names = 1);
    /* A common name has at most 64 bytes. */
    if (sandbox)
        l->cert =
            CERTIFICATE(e, .common_name = strlen(l->name) <= 64 ? l->name : NULL,
                        .key = ca->leaf_key, .issuer = sandbox, .issuer_key = key, .from_s = -HOUR,
                        .to_s = DAY, .path = -1, .names = names, .n_names = 1);
    EVP_PKEY_free(key);
    l->chain = l->cert ? sk_X509_new_null() : NULL;
    if (!l->chain || sk_X509_push(l->chain, sandbox) <= 0) {
        X509_free(sandbox);
        return l->cert ? certificate_error(e, "make a certificate") : -EIO;
    }
    l->made_ms = clock_wall_ms();
    return 0;
}

static struct ca_leaf *leaf_find(struct ca *ca, const char *sandbox_id, const char *name,
                                 struct sg_error *e)
{
    struct ca_leaf *oldest = &ca->leaves[0];
    int64_t now = clock_wall_ms();

    for (struct ca_leaf *l = ca->leaves; l < ca->leaves + CA_LEAVES; l++) {
        if (l->used && strcmp(l->sandbox, sandbox_id) == 0 && strcmp(l->name, name) == 0) {
            oldest = l;
            break;
        }
        if (l->used < oldest->used)
            oldest = l;
    }
    bool fresh = oldest->used && strcmp(oldest->sandbox, sandbox_id) == 0 &&
                 strcmp(oldest->name, name) == 0 && now >= oldest->made_ms &&
                 now - oldest->made_ms < LEAF_USED_MS;
    if (!fresh) {
        leaf_done(oldest);
        snprintf(oldest->sandbox, sizeof(oldest->sandbox), "%s", sandbox_id);
        snprintf(oldest->name, sizeof(oldest->name), "%s", name);
        if (mint(ca, oldest, e) < 0) {
            leaf_done(oldest);
            return NULL;
        }
    }
    oldest->used = ++ca->clock;
    return oldest;
}

SSL *ca_sandbox_side(struct ca *ca, const char *sandbox_id, const char *name, struct sg_error *e)
{
    struct ca_leaf *l = leaf_find(ca, sandbox_id, name, e);
    SSL *ssl = l ? SSL_new(ca->client) : NULL;

    if (!l)
        return NULL;
    if (!ssl || SSL_use_cert_and_key(ssl, l->cert, ca->leaf_key, l->chain, 1) != 1) {
        SSL_free(ssl);
        certificate_error(e, "show a certificate");
        return NULL;
    }
    SSL_set_app_data(ssl, (void *)(uintptr_t)name);
    SSL_set_accept_state(ssl);
    return ssl;
}

SSL *ca_server_side(struct ca *ca, const char *name, struct sg_error *e)
{
    SSL *ssl = server_context(ca, e) == 0 ? SSL_new(ca->server) : NULL;
    char host[POLICY_NAME_MAX + 1];

    snprintf(host, sizeof(host), "%s", name);
    if (!ssl || SSL_set_tlsext_host_name(ssl, host) != 1 || SSL_set1_host(ssl, host) != 1) {
        SSL_free(ssl);
        certificate_error(e, "set up TLS");
        return NULL;
    }
    SSL_set_hostflags(ssl, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
    SSL_set_connect_state(ssl);
    return ssl;
}
