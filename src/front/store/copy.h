/* A copy of the server's database: how a backup makes it, and how a restore prepares it for the
 * server that starts with it. These functions leave the schema at the version that it has: a newer
 * program that makes a backup must not change the file under a server that runs. */
#pragma once

#include "front/store/store.h"

/* The version of the schema that this program writes. */
int store_schema(void);

/* Writes a copy of the database in directory `dir` to the new file `to`: as it is at one point in
 * time, while other processes go on writing. */
int store_copy(const char *dir, const char *to, struct sg_error *e);

/* How many rows a database has: X(name, table). */
#define STORE_COUNTS(X)    \
    X(tenants, tenant)     \
    X(keys, key)           \
    X(secrets, vault)      \
    X(snapshots, snapshot) \
    X(volumes, volume)     \
    X(contexts, context)

struct store_facts {
    int schema;
#define STORE_COUNT(name, table) uint64_t name;
    STORE_COUNTS(STORE_COUNT)
#undef STORE_COUNT
};

/* Opens a copy that nobody else uses, dir/server.db; to be closed with store_close. */
int store_copied_open(const char *dir, struct store **ret, struct store_facts *facts,
                      struct sg_error *e);
/* Removes the row of each snapshot for which fn returns false: its layer is not in the backup. */
int store_copied_snapshots(struct store *s, bool (*fn)(const char *id, void *arg), void *arg,
                           struct sg_error *e);
/* The same for volumes; fn NULL: of all. */
int store_copied_volumes(struct store *s, bool (*fn)(const char *tenant, const char *id, void *arg),
                         void *arg, struct sg_error *e);
/* Prepares the copy for a server that starts with it. The server must know that none of the
 * sandboxes in the list lives any more, and must not give out numbers of events again that were
 * given out after the copy was made. */
int store_copied_restored(struct store *s, struct sg_error *e);
