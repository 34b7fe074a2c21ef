/* The tenants' secrets, as sealed texts that this program cannot read (lib/vault/vault.h), and what
 * is told about each. Not the server's own random bytes: that is store_secret.
 *
 * A secret is named by its id, "sec_" and ID_LEN more, or by its name, which is the tenant's own:
 * since no name begins with "sec_", one never means the other. */
#pragma once

#include "front/store/store.h"

#define STORE_VAULT_ID_LEN (4 + ID_LEN)
#define STORE_VAULT_MAX    1000 /* of a tenant */

struct store_vault {
    int64_t seq; /* grows with each that is added */
    char id[STORE_VAULT_ID_LEN + 1];
    char name[STORE_NAME_MAX + 1];
    int64_t version; /* 1, and one more with each new value */
    int64_t created_ms, updated_ms;
    const char *metadata; /* a JSON object of strings; lives until the callback returns */
    const char *sealed;   /* the same */
};

/* Makes id, version and times. -EEXIST: the name is taken; -EDQUOT: STORE_VAULT_MAX are there. */
int store_vault_add(struct store *s, const char *tenant, const char *name, const char *metadata,
                    const char *sealed, char ret_id[STORE_VAULT_ID_LEN + 1], struct sg_error *e);
/* A new version. metadata NULL: as it was. -ENOENT. */
int store_vault_update(struct store *s, const char *tenant, const char *id, const char *metadata,
                       const char *sealed, struct sg_error *e);
/* By id or name; fn is called once. -ENOENT. */
int store_vault_get(struct store *s, const char *tenant, const char *ref,
                    void (*fn)(const struct store_vault *v, void *arg), void *arg,
                    struct sg_error *e);
/* By id or name. -ENOENT. */
int store_vault_remove(struct store *s, const char *tenant, const char *ref, struct sg_error *e);
/* Newest first, those with a seq below `before` (STORE_NEWEST: all), until fn says false; sealed is
 * NULL. */
int store_vault_each(struct store *s, const char *tenant, int64_t before,
                     bool (*fn)(const struct store_vault *v, void *arg), void *arg,
                     struct sg_error *e);
