/* Certificates for the sandbox's side of an inspected connection, and the roots that the server's
 * certificate is checked against.
 *
 *   the guard's CA        ca.key and ca.pem in its directory, or in memory alone
 *     `- a sandbox's CA   its key is derived from the guard's secret and the sandbox's id
 *          `- leaf        for one name and one day; all leaves share a key, which no file ever has
 *
 * A sandbox's CA has two certificates with the same X.509 subject and the same key:
 *
 *   self-signed           constrained to the names of the sandbox's rules; the sandbox is given
 *                         this one to trust
 *   signed by the guard   constrained to one name; sent with each leaf, for programs that trust the
 *                         guard's CA instead
 *
 *   ca.c      keys, both certificates, files      ca_leaf.c      leaves, and OpenSSL's contexts */
#pragma once

#include <openssl/ssl.h>

#include "guard/guard.h"
#include "guard/inspect.h"
#include "lib/tls/authority.h"
#include "lib/tls/certificate.h"

#define CA_LEAVES 256 /* in the cache; the least recently used leaf goes */

struct ca_leaf {
    char sandbox[ID_LEN + 1];
    char name[254];
    X509 *cert;
    STACK_OF(X509) * chain; /* the sandbox's CA, signed by the guard's */
    int64_t made_ms;
    uint64_t used; /* by the cache's clock; 0: an empty entry */
};

struct ca {
    struct guard *guard;
    struct authority root;
    EVP_PKEY *leaf_key;
    SSL_CTX *client, *server; /* the sandbox's side, the server's side */
    char *roots;              /* roots that `server` trusts besides the system's */
    size_t roots_len;
    uint64_t clock;
    struct ca_leaf leaves[CA_LEAVES];
};

/* ---- ca.c ------------------------------------------------------------------------------------- */

/* A key of P-256 that only the guard can compute, the same each time for the same label. */
EVP_PKEY *ca_derived_key(const struct vault_key *from, const char *label, struct sg_error *e);
/* The key and the name of a sandbox's CA. */
EVP_PKEY *ca_sandbox_key(struct ca *ca, const char *sandbox_id, struct sg_error *e);
void ca_sandbox_name(const char *sandbox_id, char ret[64]);

/* ---- ca_leaf.c ------------------------------------------------------------------------------- */

/* Makes both contexts and the leaves' key; reads the system's roots. */
int ca_contexts(struct ca *ca, struct sg_error *e);
void ca_contexts_done(struct ca *ca);
/* Both functions return an SSL whose handshake is yet to begin. The sandbox's side shows a leaf for
 * the name and refuses a client that asks for another. The caller has made sure that the name has a
 * rule, and keeps `name` as long as the SSL. */
SSL *ca_sandbox_side(struct ca *ca, const char *sandbox_id, const char *name, struct sg_error *e);
/* The server must show a certificate for that name. Roots of changed settings are used. */
SSL *ca_server_side(struct ca *ca, const char *name, struct sg_error *e);
