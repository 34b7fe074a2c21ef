#include "front/store/dbworker_migrate.h"

#include <string.h>

#define LOCK "3704226193" /* of pg_advisory_xact_lock: a number that no other program uses */

/* The files of migrations/, each ended by a NUL, then an empty one (cmake/migrations.cmake). */
extern const char dbworker_migrations[];

static const char *text_of(int version)
{
    const char *text = dbworker_migrations;

    while (--version > 0 && *text)
        text += strlen(text) + 1;
    return text;
}

int migrate_version(void)
{
    int n = 0;

    while (*text_of(n + 1))
        n++;
    return n;
}

static bool run(PGconn *pg, const char *sql)
{
    PGresult *result = PQexec(pg, sql);
    ExecStatusType status = PQresultStatus(result);

    PQclear(result);
    return status == PGRES_COMMAND_OK || status == PGRES_TUPLES_OK;
}

static bool read_number(PGconn *pg, const char *sql, int *ret)
{
    PGresult *result = PQexec(pg, sql);
    bool good = PQresultStatus(result) == PGRES_TUPLES_OK && PQntuples(result) == 1;

    if (good)
        *ret = (int)strtol(PQgetvalue(result, 0, 0), NULL, 10);
    PQclear(result);
    return good;
}

/* Reads the version of the schema; 0: there is no schema yet. */
static bool read_version(PGconn *pg, int *ret)
{
    int there = 0;

    *ret = 0;
    /* Asks the table: to_regclass may answer from before the time we waited for the lock. */
    if (!read_number(pg,
                     "SELECT count(*) FROM pg_catalog.pg_class c"
                     " JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace"
                     " WHERE n.nspname = 'sandglass' AND c.relname = 'schema_version'",
                     &there))
        return false;
    return !there ||
           read_number(pg, "SELECT coalesce(max(version), 0) FROM sandglass.schema_version", ret);
}

/* Goes one version further, unless another server was faster. */
static bool step(PGconn *pg, int *version)
{
    char note[160];

    if (!run(pg, "BEGIN ISOLATION LEVEL READ COMMITTED;"
                 "SET LOCAL statement_timeout = '60s';"
                 "SET LOCAL lock_timeout = '60s';"
                 "SELECT set_config('sandglass.tenant', '*', true),"
                 " pg_advisory_xact_lock(" LOCK ")") ||
        !read_version(pg, version))
        return false;
    if (*version >= migrate_version())
        return run(pg, "COMMIT");
    int next = *version + 1;
    snprintf(note, sizeof(note),
             "INSERT INTO sandglass.schema_version (version, applied_at)"
             " VALUES (%d, clock_timestamp()); COMMIT",
             next);
    if (!run(pg, text_of(next)) || !run(pg, note))
        return false;
    *version = next;
    return true;
}

enum migrated migrate(PGconn *pg, int *ret_version)
{
    if (!read_version(pg, ret_version))
        return MIGRATE_FAILED;
    while (*ret_version < migrate_version())
        if (!step(pg, ret_version))
            return MIGRATE_FAILED;
    return *ret_version > migrate_version() ? MIGRATE_NEWER : MIGRATED;
}
