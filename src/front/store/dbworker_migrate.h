/* The schema `sandglass`: made, and brought to the version of this program, when a connection is
 * made. migrations/ has a file for each version, never changed once released. Each is applied in
 * one transaction, under a lock, so that of two servers that start at once one does it. */
#pragma once

#include <libpq-fe.h>

#include "lib/base/base.h"

enum migrated {
    MIGRATED,       /* the schema is of this version */
    MIGRATE_NEWER,  /* it is of a newer one: nothing was touched */
    MIGRATE_FAILED, /* PQerrorMessage says why */
};
/* Blocks. ret_version: what the database has. */
enum migrated migrate(PGconn *pg, int *ret_version);
int migrate_version(void); /* of this program */
