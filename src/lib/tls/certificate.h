/* X.509 certificates on P-256, made by OpenSSL: of an authority, which is constrained to names, or of
 * a server, for one name. */
#pragma once

#include <openssl/x509.h>

#include "lib/base/err.h"

#define CERTIFICATE_NAMES_MAX 2048

/* Puts OpenSSL's own words for its last error into e and empties OpenSSL's error queue. */
int certificate_error(struct sg_error *e, const char *what);

struct certificate_spec {
    const char *common_name; /* NULL: none */
    EVP_PKEY *key;           /* the certificate's own key */
    X509 *issuer;            /* NULL: self-signed */
    EVP_PKEY *issuer_key;
    long from_s, to_s;        /* validity, relative to now */
    int path;                 /* authorities allowed below it; -1: it is none itself */
    const char *const *names; /* of an authority: constraints; of a server: its name */
    size_t n_names;
};
X509 *certificate_make(const struct certificate_spec *spec, struct sg_error *e);
#define CERTIFICATE(e, ...) certificate_make(&(struct certificate_spec){__VA_ARGS__}, e)
