/* The tenants' secrets, as sealed texts that this program cannot read (lib/vault/vault.h), with the
 * data that lists show about each. The server's own random bytes are elsewhere: store_secret.
 *
 * A secret is named by its id, "sec_" and ID_LEN more characters, or by a name that the tenant
 * chose. No name begins with "sec_", so the two cannot be confused. */
#pragma once

#include "front/store/store.h"

#define STORE_VAULT_ID_LEN (4 + ID_LEN)
#define STORE_VAULT_MAX    1000 /* secrets of a tenant */

struct store_vault {
    int64_t seq; /* grows with each new secret */
    char id[STORE_VAULT_ID_LEN + 1];
    char name[STORE_NAME_MAX + 1];
    int64_t version; /* 1 at first, one more with each new value */
    int64_t created_ms, updated_ms;
    const char *metadata; /* a JSON object of strings; lives until the callback returns */
    const char *sealed;   /* lives as long */
};

/* Makes the id, the version and the times. -EEXIST: the name is taken; -EDQUOT: the tenant has
 * STORE_VAULT_MAX secrets. */
int store_vault_add(struct store *s, const char *tenant, const char *name, const char *metadata,
                    const char *sealed, char ret_id[STORE_VAULT_ID_LEN + 1], struct sg_error *e);
/* Stores a new version. metadata NULL: unchanged. -ENOENT. */
int store_vault_update(struct store *s, const char *tenant, const char *id, const char *metadata,
                       const char *sealed, struct sg_error *e);
/* Finds a secret by id or name, and calls fn once. -ENOENT. */
int store_vault_get(struct store *s, const char *tenant, const char *ref,
                    void (*fn)(const struct store_vault *v, void *arg), void *arg,
                    struct sg_error *e);
/* Removes a secret by id or name. -ENOENT. */
int store_vault_remove(struct store *s, const char *tenant, const char *ref, struct sg_error *e);
/* Calls fn for each secret with a seq below `before` (STORE_NEWEST: all), newest first, until fn
 * returns false; sealed is NULL. */
int store_vault_each(struct store *s, const char *tenant, int64_t before,
                     bool (*fn)(const struct store_vault *v, void *arg), void *arg,
                     struct sg_error *e);
