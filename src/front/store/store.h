/* What outlives the server: tenants, keys, names of snapshots, and contexts (contexts.h). SQLite,
 * one file in the state directory, WAL; another process (`sandglass key`) may write at the same
 * time, and its changes are seen by the next call. Calls block for microseconds; none reads more
 * than it says. */
#pragma once

#include "lib/base/err.h"
#include "lib/base/ids.h"

struct store;

#define STORE_NAME_MAX 64
#define STORE_KEY_LEN  44 /* "e2b_" and 40 hexadecimal digits */

/* The limits of a tenant. 0: the server's setting. */
struct store_tenant {
    char id[ID_LEN + 1];
    char name[STORE_NAME_MAX + 1];
    uint32_t max_sandboxes; /* that run */
    uint32_t max_paused;
    uint64_t max_paused_memory;                       /* bytes that these hold */
    uint32_t max_contexts, max_conversation_contexts; /* their sandboxes at a time */
    uint64_t execution_timeout_ms, execution_timeout_max_ms;
    uint64_t code_max; /* bytes that a tool takes */
    uint64_t memory;   /* bytes for a sandbox */
    /* How what it says is sanitised: 0, the server's word counts; or one more than the number of
     * the mode (lib/sanitise/sanitise.h). key_: of the key that was checked. */
    uint8_t sanitise, key_sanitise;
    bool sanitise_always; /* none of its keys and calls may say off */
};

/* A change of limits: NULL leaves one as it is. */
struct store_limits {
    const uint64_t *max_sandboxes, *max_contexts, *max_conversation_contexts;
    const uint64_t *execution_timeout_ms, *execution_timeout_max_ms, *code_max, *memory;
    const uint64_t *max_paused, *max_paused_memory;
};

struct store_key {
    char id[ID_LEN + 1]; /* names the key in lists; no secret */
    char tenant[ID_LEN + 1], tenant_name[STORE_NAME_MAX + 1];
    char name[STORE_NAME_MAX + 1];
    char hint[16];                           /* its first and last characters */
    uint8_t sanitise;                        /* as in struct store_tenant */
    int64_t created_ms, used_ms, revoked_ms; /* 0: never */
};

struct store_snapshot {
    int64_t seq;         /* grows with each that is added; filled by the store */
    char id[ID_LEN + 1]; /* the layer's name, and the template id */
    char tenant[ID_LEN + 1];
    char name[STORE_NAME_MAX + 1], tag[STORE_NAME_MAX + 1]; /* name "" if it was given none */
    char sandbox_id[ID_LEN + 1];                            /* it was taken of */
    char base_template[STORE_NAME_MAX + 1];
    int64_t created_ms;
    uint64_t bytes;
};

int store_open(const char *dir, struct store **ret, struct sg_error *e);
void store_close(struct store *s);
/* The directory that its file is in, opened. */
int store_dir(const struct store *s, struct sg_error *e);

/* Makes the tenant if it is new. Names: 1 to 64 of [a-z0-9_-]. The id of a new one follows from its
 * name, so that servers which share a database of contexts mean the same tenant by it. */
int store_tenant_ensure(struct store *s, const char *name, struct store_tenant *ret,
                        struct sg_error *e);
int store_tenant_get(struct store *s, const char *id, struct store_tenant *ret);
/* Calls fn for each, by name, until it says false. */
int store_tenants_each(struct store *s, bool (*fn)(const struct store_tenant *, void *), void *arg,
                       struct sg_error *e);
/* -ENOENT: no tenant has that name. */
int store_tenant_limit(struct store *s, const char *name, const struct store_limits *limits,
                       struct sg_error *e);
/* As in struct store_tenant. -ENOENT. */
int store_tenant_sanitise(struct store *s, const char *name, uint8_t sanitise, bool always,
                          struct sg_error *e);
int store_tenants_count(struct store *s, uint32_t *ret, struct sg_error *e);

/* The key itself is returned once, here, and only its hash kept. */
int store_key_create(struct store *s, const char *tenant_id, const char *name,
                     char ret[STORE_KEY_LEN + 1], struct store_key *ret_info, struct sg_error *e);
/* -ENOENT: unknown or revoked. Compared in constant time. The last use is noted, once a minute. */
int store_key_check(struct store *s, const char *key, struct store_tenant *ret);
/* As in struct store_tenant; by the key's id. */
int store_key_sanitise(struct store *s, const char *id, uint8_t sanitise, struct sg_error *e);
/* Calls fn for each, until it says false. tenant NULL: of all. */
int store_keys_each(struct store *s, const char *tenant,
                    bool (*fn)(const struct store_key *, void *), void *arg, struct sg_error *e);
/* By id, or by the key itself. */
int store_key_revoke(struct store *s, const char *which, struct sg_error *e);

/* Random bytes that the server keeps for itself under a name; made when first asked for. */
int store_secret(struct store *s, const char *name, void *ret, size_t len, struct sg_error *e);

/* A name and tag belong to the newest: the one that had them before is removed, and its id returned
 * ("" if there was none), whose layer nobody can name any more. */
int store_snapshot_add(struct store *s, const struct store_snapshot *snap,
                       char ret_replaced[ID_LEN + 1], struct sg_error *e);
/* By id, or name[:tag] with the tag "default" if none is given; of this tenant only. -ENOENT. */
int store_snapshot_get(struct store *s, const char *tenant, const char *ref,
                       struct store_snapshot *ret, struct sg_error *e);
/* -ENOENT: it was not there. */
int store_snapshots_count(struct store *s, const char *tenant, uint32_t *ret, struct sg_error *e);
int store_snapshot_remove(struct store *s, const char *tenant, const char *id, struct sg_error *e);
#define STORE_NEWEST INT64_MAX
/* Newest first, those with a seq below `before`, until fn says false. */
int store_snapshots_each(struct store *s, const char *tenant, int64_t before,
                         bool (*fn)(const struct store_snapshot *, void *), void *arg,
                         struct sg_error *e);

/* Layers that no snapshot names: one that is being saved, one whose snapshot was removed, the one
 * of a fork. Whoever makes a layer says so first; naming it takes it off the list, and removing the
 * snapshot puts it back, each in one transaction. So what a front that was killed left behind is
 * found here by the next. */
int store_snapshot_loose(struct store *s, const char *id, struct sg_error *e);
/* The layer is gone. */
void store_snapshot_gone(struct store *s, const char *id);
int store_loose_snapshots_each(struct store *s, void (*fn)(const char *id, void *arg), void *arg,
                               struct sg_error *e);
