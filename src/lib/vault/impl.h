/* Shared by the files of the vault. Nobody else includes this. */
#pragma once

#include "lib/vault/vault.h"

#define VAULT_KEY_LEN 32

/* Makes room for a secret of that length, all zero. The caller writes it in place, so that there is
 * no second copy. The struct must hold no secret yet. -ENOMEM, -E2BIG as secret_set. */
int secret_alloc(struct secret *s, size_t len);

struct vault_key {
    struct secret private_key; /* VAULT_KEY_LEN bytes */
    uint8_t public_key[VAULT_PUBLIC_LEN];
};

/* X25519 of the two keys. -EBADMSG: the other's public key is a weak one, which gives no secret. */
int vault_agree(const uint8_t private_key[VAULT_KEY_LEN],
                const uint8_t public_key[VAULT_PUBLIC_LEN], uint8_t ret[VAULT_KEY_LEN]);
/* Makes a new key pair. */
void vault_pair(uint8_t private_key[VAULT_KEY_LEN], uint8_t public_key[VAULT_PUBLIC_LEN]);
/* HKDF-SHA256. */
void vault_hkdf(const uint8_t *key, size_t key_len, const uint8_t *salt, size_t salt_len,
                const char *info, uint8_t *ret, size_t len);
