/* A certificate authority of our own: a key that never leaves this machine, and a certificate that
 * whoever likes may trust. They are the files ca.key and ca.pem of a directory, made at the first
 * use; the certificate follows from the key and is renewed by itself. */
#pragma once

#include <openssl/x509.h>

#include "lib/base/err.h"

struct authority {
    EVP_PKEY *key;
    X509 *cert;
};

struct authority_spec {
    const char *common_name;
    int path;                 /* how many authorities may be below it */
    const char *const *names; /* it can speak for these and the names below them; none: for all */
    size_t n_names;
};

/* dirfd -1: in memory alone. Call authority_done also after a failure. */
int authority_open(int dirfd, const struct authority_spec *spec, struct authority *a,
                   struct sg_error *e);
void authority_done(struct authority *a);
