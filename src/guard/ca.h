/* Certificates for the sandbox's side of an inspected connection, and what the server's side is
 * checked against.
 *
 *   the guard's CA   ca.key and ca.pem in its directory, or in memory alone
 *     `- a sandbox's CA   key derived from the guard's secret and the sandbox's id; two forms with
 *        |                one sandbox and one key:
 *        |                self-signed, with constraints to the names of its rules: what the sandbox
 *        |                is given to trust;
 *        |                signed by the guard's CA, constrained to one name: sent with each leaf,
 *        |                for who trusts the guard's CA instead
 *        `- leaf          of one name, for a day; one key for all, which no file ever has
 *
 *   ca.c      keys, the two forms, files      ca_leaf.c      leaves, and contexts of OpenSSL */
#pragma once

#include <openssl/ssl.h>

#include "guard/guard.h"
#include "guard/inspect.h"

#define CA_LEAVES 256 /* kept; the one that was not used longest goes */

struct ca_leaf {
    char sandbox[ID_LEN + 1];
    char name[254];
    X509 *cert;
    STACK_OF(X509) * chain; /* the sandbox's CA, signed by the guard's */
    int64_t made_ms;
    uint64_t used; /* the cache's clock; 0: an empty place */
};

struct ca {
    struct guard *guard;
    EVP_PKEY *key, *leaf_key;
    X509 *cert;
    SSL_CTX *client, *server; /* contexts for either side */
    char *roots;              /* that `server` was made with, beside the system's */
    size_t roots_len;
    uint64_t clock;
    struct ca_leaf leaves[CA_LEAVES];
};

/* OpenSSL's own words for its last error; its queue is left empty. */
int ca_error(struct sg_error *e, const char *what);

/* ---- ca.c: making certificates --------------------------------------------------------------- */

struct ca_certificate_spec {
    const char *common_name; /* NULL: none */
    EVP_PKEY *key;           /* its own */
    X509 *issuer;            /* NULL: itself */
    EVP_PKEY *issuer_key;
    long from_s, to_s;        /* from now */
    int path;                 /* below it; -1: it is no CA */
    const char *const *names; /* CA: constraints; else alternative names */
    size_t n_names;
};
X509 *ca_make_certificate(const struct ca_certificate_spec *spec, struct sg_error *e);
/* The key and the name of a sandbox's CA. */
EVP_PKEY *ca_sandbox_key(struct ca *ca, const char *sandbox_id, struct sg_error *e);
void ca_sandbox_name(const char *sandbox_id, char ret[64]);

/* ---- ca_leaf.c ------------------------------------------------------------------------------- */

/* Contexts and the leaves' key; reads the system's roots. */
int ca_contexts(struct ca *ca, struct sg_error *e);
void ca_contexts_done(struct ca *ca);
/* Both take part in a handshake that is yet to begin. The sandbox's side shows a leaf of the name,
 * and refuses a client that asks for another; the caller has made sure that the name has a rule,
 * and keeps it as long as the SSL. */
SSL *ca_sandbox_side(struct ca *ca, const char *sandbox_id, const char *name, struct sg_error *e);
/* The server's must have a certificate of that name. Roots of new settings are heeded. */
SSL *ca_server_side(struct ca *ca, const char *name, struct sg_error *e);
