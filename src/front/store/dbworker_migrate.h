/* Makes the schema `sandglass`, or brings it to this program's version, whenever a connection is
 * made. migrations/ has a file for each version, never changed once released. Each file is applied
 * in one transaction, under a lock, so that of two servers that start at once only one applies
 * it. */
#pragma once

#include <libpq-fe.h>

#include "lib/base/base.h"

enum migrated {
    MIGRATED,       /* the schema has this program's version */
    MIGRATE_NEWER,  /* the schema is of a newer version: nothing was touched */
    MIGRATE_FAILED, /* PQerrorMessage says why */
};
/* Blocks. ret_version: the version that the database has. */
enum migrated migrate(PGconn *pg, int *ret_version);
int migrate_version(void); /* of this program */
