/* What the files of the vault share and nobody else sees. */
#pragma once

#include "lib/vault/vault.h"

#define VAULT_KEY_LEN 32

/* Room for a secret of that length, all zero; it is to be written in place, so that there is no
 * second copy. The struct holds none yet. -ENOMEM, -E2BIG as secret_set. */
int secret_alloc(struct secret *s, size_t len);

struct vault_key {
    struct secret private_key; /* VAULT_KEY_LEN bytes */
    uint8_t public_key[VAULT_PUBLIC_LEN];
};

/* X25519 of the two: -EBADMSG if the other's public key leads nowhere. */
int vault_agree(const uint8_t private_key[VAULT_KEY_LEN],
                const uint8_t public_key[VAULT_PUBLIC_LEN], uint8_t ret[VAULT_KEY_LEN]);
/* A key pair that nobody has had before. */
void vault_pair(uint8_t private_key[VAULT_KEY_LEN], uint8_t public_key[VAULT_PUBLIC_LEN]);
/* HKDF-SHA256. */
void vault_hkdf(const uint8_t *key, size_t key_len, const uint8_t *salt, size_t salt_len,
                const char *info, uint8_t *ret, size_t len);
