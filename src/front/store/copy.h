/* A copy of the server's database: how a backup gets it, and what a server is told that starts with
 * one. The file is opened in the version that it has, and a copy of an older version is one: a
 * server that runs is not surprised by a newer program that makes a backup. */
#pragma once

#include "lib/base/err.h"
#include "lib/base/ids.h"

/* The version of the schema that this program knows. */
int store_schema(void);

/* Writes a copy of the database of directory `dir` to its new file `to`: as it is at one moment,
 * while others go on writing. */
int store_copy(const char *dir, const char *to, struct sg_error *e);

struct store_facts {
    int schema;
    uint64_t tenants, keys, secrets, snapshots, contexts;
};

struct store_copied; /* a copy that nobody else uses, in dir/server.db */
int store_copied_open(const char *dir, struct store_copied **ret, struct store_facts *facts,
                      struct sg_error *e);
/* Of each snapshot whose layer fn does not say that it has, the row is removed. */
int store_copied_snapshots(struct store_copied *c, bool (*fn)(const char *id, void *arg), void *arg,
                           struct sg_error *e);
/* For a server that begins with it: which sandboxes there are is none of them, and numbers of
 * events that were given out since it was made must not be given out again. */
int store_copied_restored(struct store_copied *c, struct sg_error *e);
void store_copied_close(struct store_copied *c);
