/* The data that outlives the server: tenants, keys, names of snapshots, secrets, events, and
 * contexts (contexts.h). One SQLite file in the state directory, in WAL mode. Another process
 * (`sandglass key`) may write at the same time; the next call sees its changes. Calls block for
 * microseconds, and none reads more than it says. */
#pragma once

#include "lib/base/err.h"
#include "lib/base/ids.h"

struct store;

#define STORE_NAME_MAX  64
#define STORE_KEY_LEN   44 /* "e2b_" and 40 hexadecimal digits */
#define STORE_TOKEN_MAX 50 /* the longest token */

/* A token and its prefix. A key is a tenant's, for everything that a tenant may do. The operator's
 * token ("admin_e2b_") is nobody's: it opens E2B's routes for administration and no others. An
 * access token ("sk_e2b_") is a tenant's, for GET /teams. All are kept and taken back alike. */
enum store_token { STORE_KEY, STORE_ADMIN, STORE_ACCESS, STORE_TOKEN_MAX_ };

/* The limits of a tenant; 0: the server's setting counts.
 *   max_sandboxes          running ones
 *   max_paused_memory      bytes that paused sandboxes hold
 *   max_..._contexts       contexts with a sandbox at a time
 *   code_max               bytes that a tool accepts
 *   memory                 bytes of a sandbox */
#define STORE_LIMITS(X)                    \
    X(uint32_t, max_sandboxes)             \
    X(uint32_t, max_contexts)              \
    X(uint32_t, max_conversation_contexts) \
    X(uint64_t, execution_timeout_ms)      \
    X(uint64_t, execution_timeout_max_ms)  \
    X(uint64_t, code_max)                  \
    X(uint64_t, memory)                    \
    X(uint32_t, max_paused)                \
    X(uint64_t, max_paused_memory)

struct store_tenant {
    char id[ID_LEN + 1];
    char name[STORE_NAME_MAX + 1];
#define STORE_LIMIT(type, name) type name;
    STORE_LIMITS(STORE_LIMIT)
#undef STORE_LIMIT
    /* How the output of the tenant's sandboxes is sanitised: 0 for the server's setting, else the
     * number of the mode plus one (lib/sanitise/sanitise.h). key_sanitise: of the key that was
     * checked. */
    uint8_t sanitise, key_sanitise;
    bool sanitise_always; /* no key and no call of the tenant may turn it off */
};

/* A change of limits: NULL leaves a limit as it is. */
struct store_limits {
#define STORE_LIMIT(type, name) const uint64_t *name;
    STORE_LIMITS(STORE_LIMIT)
#undef STORE_LIMIT
};

struct store_key {
    char id[ID_LEN + 1]; /* names the key in lists; no secret */
    enum store_token kind;
    char tenant[ID_LEN + 1], tenant_name[STORE_NAME_MAX + 1]; /* "" of an operator's token */
    char name[STORE_NAME_MAX + 1];
    char hint[24];                           /* the key's first and last characters */
    uint8_t sanitise;                        /* as in struct store_tenant */
    int64_t created_ms, used_ms, revoked_ms; /* 0: never */
};

struct store_snapshot {
    int64_t seq;         /* grows with each new snapshot; the store fills it in */
    char id[ID_LEN + 1]; /* the layer's name, and the template id */
    char tenant[ID_LEN + 1];
    char name[STORE_NAME_MAX + 1], tag[STORE_NAME_MAX + 1]; /* name: "" if it was given none */
    char sandbox_id[ID_LEN + 1];                            /* the snapshot was taken of it */
    char base_template[STORE_NAME_MAX + 1];
    int64_t created_ms;
    uint64_t bytes;
    /* JSON of front/core/defaults.h, or NULL: to be added; not filled in by readers. */
    const char *defaults;
};

int store_open(const char *dir, struct store **ret, struct sg_error *e);
void store_close(struct store *s);
/* Opens the directory of the store's file. */
int store_dir(const struct store *s, struct sg_error *e);

/* Finds the tenant, or makes it if it is new. Names: 1 to 64 of [a-z0-9_-]. A new tenant's id
 * follows from its name, so that servers that share a database of contexts give it the same id. */
int store_tenant_ensure(struct store *s, const char *name, struct store_tenant *ret,
                        struct sg_error *e);
int store_tenant_get(struct store *s, const char *id, struct store_tenant *ret);
/* By its id or else its name. -ENOENT. */
int store_tenant_named(struct store *s, const char *which, struct store_tenant *ret);
/* -ENOENT: no tenant has that name. */
int store_tenant_find(struct store *s, const char *name, struct store_tenant *ret,
                      struct sg_error *e);
/* Calls fn for each tenant, sorted by name, until fn returns false. */
int store_tenants_each(struct store *s, bool (*fn)(const struct store_tenant *, void *), void *arg,
                       struct sg_error *e);
/* -ENOENT: no tenant has that name. */
int store_tenant_limit(struct store *s, const char *name, const struct store_limits *limits,
                       struct sg_error *e);
/* The values are those of struct store_tenant. -ENOENT. */
int store_tenant_sanitise(struct store *s, const char *name, uint8_t sanitise, bool always,
                          struct sg_error *e);
int store_tenants_count(struct store *s, uint32_t *ret, struct sg_error *e);

/* Returns the token itself, this once: the store keeps only its hash. tenant_id: NULL for
 * STORE_ADMIN. */
int store_token_create(struct store *s, enum store_token kind, const char *tenant_id,
                       const char *name, char ret[STORE_TOKEN_MAX + 1], struct store_key *ret_info,
                       struct sg_error *e);
int store_key_create(struct store *s, const char *tenant_id, const char *name,
                     char ret[STORE_KEY_LEN + 1], struct store_key *ret_info, struct sg_error *e);
/* -ENOENT: the token is unknown, revoked or of another kind. Compares in constant time. Notes the
 * last use, once a minute. The operator's token has no tenant: all of *ret is empty. */
int store_token_check(struct store *s, enum store_token kind, const char *token,
                      struct store_tenant *ret);
int store_key_check(struct store *s, const char *key, struct store_tenant *ret);
/* Of the tenant's own tokens of this kind, by the id: another name, or the end. -ENOENT: the tenant
 * has none with that id, or it is revoked. */
int store_token_rename(struct store *s, const char *tenant, enum store_token kind, const char *id,
                       const char *name, struct sg_error *e);
int store_token_end(struct store *s, const char *tenant, enum store_token kind, const char *id,
                    struct sg_error *e);
/* How many the tenant has that are not revoked. */
int store_tokens_count(struct store *s, const char *tenant, enum store_token kind, uint32_t *ret,
                       struct sg_error *e);
const char *store_token_prefix(enum store_token kind);
/* The value is that of struct store_tenant. id: the key's id. */
int store_key_sanitise(struct store *s, const char *id, uint8_t sanitise, struct sg_error *e);
/* Calls fn for each key, until fn returns false. tenant NULL: of all tenants. */
int store_keys_each(struct store *s, const char *tenant,
                    bool (*fn)(const struct store_key *, void *), void *arg, struct sg_error *e);
/* which: the key's id, or the key itself. */
int store_key_revoke(struct store *s, const char *which, struct sg_error *e);

/* Random bytes that the server keeps for itself under a name. The first call makes them. */
int store_secret(struct store *s, const char *name, void *ret, size_t len, struct sg_error *e);

/* Adds a snapshot. The newest one owns its name and tag: the snapshot that had them before is
 * removed. ret_replaced gets that one's id ("" if there was none), since nobody can name its layer
 * any more. */
int store_snapshot_add(struct store *s, const struct store_snapshot *snap,
                       char ret_replaced[ID_LEN + 1], struct sg_error *e);
/* Finds a snapshot of this tenant. ref: an id, or name[:tag], where the tag is "default" if it is
 * missing. -ENOENT. */
int store_snapshot_get(struct store *s, const char *tenant, const char *ref,
                       struct store_snapshot *ret, struct sg_error *e);
/* store_snapshot_remove: -ENOENT if there is no such snapshot. */
int store_snapshots_count(struct store *s, const char *tenant, uint32_t *ret, struct sg_error *e);
int store_snapshot_remove(struct store *s, const char *tenant, const char *id, struct sg_error *e);
/* On the heap; "" if the snapshot has none, or there is none. */
int store_snapshot_defaults(struct store *s, const char *id, char **ret, struct sg_error *e);
#define STORE_NEWEST INT64_MAX
/* Calls fn for each snapshot with a seq below `before`, newest first, until fn returns false. */
int store_snapshots_each(struct store *s, const char *tenant, int64_t before,
                         bool (*fn)(const struct store_snapshot *, void *), void *arg,
                         struct sg_error *e);

/* The list of loose layers, which no snapshot names: a layer that is being saved, one whose
 * snapshot was removed, one made for a fork. The code that makes a layer puts it on the list first.
 * Adding the snapshot takes it off, and removing the snapshot puts it back, each in one
 * transaction. So a front finds here the layers that a killed front left behind. */
int store_snapshot_loose(struct store *s, const char *id, struct sg_error *e);
/* Takes a layer off the list: it is deleted. */
void store_snapshot_gone(struct store *s, const char *id);
/* Whether a snapshot or a build still names the layer. In doubt it does. */
bool store_layer_named(struct store *s, const char *id);
int store_loose_snapshots_each(struct store *s, void (*fn)(const char *id, void *arg), void *arg,
                               struct sg_error *e);
