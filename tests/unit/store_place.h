/* A directory for a store, and what tests do with one. */
#pragma once

#include "tap.h"

#include <sqlite3.h>

#include "lib/base/base.h"
#include "front/store/store.h"

struct place {
    char dir[64], file[96];
};

static inline struct place place_make(void)
{
    struct place p = {.dir = "/tmp/test_store.XXXXXX"};

    EXPECT(mkdtemp(p.dir) != NULL);
    snprintf(p.file, sizeof(p.file), "%s/server.db", p.dir);
    return p;
}

static inline void place_remove(const struct place *p)
{
    static const char *const suffixes[] = {"", "-wal", "-shm", "-journal"};
    char key[128];

    for (size_t i = 0; i < ARRAY_SIZE(suffixes); i++) {
        char path[128];

        snprintf(path, sizeof(path), "%s%s", p->file, suffixes[i]);
        unlink(path);
    }
    snprintf(key, sizeof(key), "%s/events.key", p->dir);
    unlink(key);
    EXPECT(rmdir(p->dir) == 0);
}

static inline struct store *open_ok(const struct place *p)
{
    struct store *s = NULL;
    struct sg_error e;

    if (store_open(p->dir, &s, &e) < 0) {
        printf("Bail out! %s\n", e.message);
        exit(1);
    }
    return s;
}

static inline void make_key(struct store *s, const char *tenant, char key[STORE_KEY_LEN + 1],
                            struct store_key *info)
{
    struct store_tenant t;
    struct sg_error e;

    EXPECT(store_tenant_ensure(s, tenant, &t, &e) == 0);
    EXPECT(store_key_create(s, t.id, "laptop", key, info, &e) == 0);
}

static inline void run_sql(const struct place *p, const char *sql)
{
    sqlite3 *db;

    EXPECT(sqlite3_open(p->file, &db) == SQLITE_OK);
    EXPECT(sqlite3_exec(db, sql, NULL, NULL, NULL) == SQLITE_OK);
    sqlite3_close(db);
}
