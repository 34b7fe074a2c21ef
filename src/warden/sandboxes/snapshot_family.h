/* Families of snapshots: directories of STATE/layers (snapshot.h). */
#pragma once

#include "lib/base/ids.h"
#include "lib/base/list.h"
#include "lib/base/err.h"
#include "warden/layers/world.h"
#include "wire/files.h"

struct server;

#define FAMILY_NAME (2 * ID_LEN + 16)

struct family {
    struct server *server;
    char name[FAMILY_NAME]; /* "": the worlds */
    int dir;
    bool worlds;
    struct world_source world; /* that its snapshots stand on; .dir -1: none */
    unsigned users;            /* snapshots, those that are being removed included */
};

/* Makes an empty family. world: NULL for none. */
int family_make(struct server *s, const struct world_source *world, struct family **ret,
                struct sg_error *e);
/* The worlds, STATE/worlds, as a family of one member: for each of them another. */
struct family *family_of_worlds(struct server *s);
/* What the directory of a world is called when its name was forgotten. */
void world_gone_name(const char *id, char ret[FILES_NAME]);
/* At start, after families_load: calls `gone` for each such world, and has removed what is left of
 * worlds that were being removed. */
void worlds_load(struct server *s, void (*gone)(struct server *s, const char *id));
struct family *family_use(struct family *f);
/* The last user removes the directory. */
void family_release(struct family *f);
/* Moves a directory of the family aside, and has it removed. It may be missing. If that does not
 * finish, the next start does it: no snapshot has such a name. */
void family_remove(struct family *f, const char *name);

/* Called for each directory that may be a snapshot. */
typedef void (*family_found)(struct family *f, const char *name);
/* At start: finds all families. What is left of things that a killed server wrote or removed is
 * removed. Snapshots of an older version, or from a backup, are not in a family: each becomes one of
 * its own. If the marks of a family are not those that this server's overlays have, they are
 * changed. */
int families_load(struct server *s, family_found found, struct sg_error *e);
