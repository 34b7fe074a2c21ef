/* Worlds: root file systems that come from images, in place of the host's /usr.
 *
 * A world is a directory STATE/worlds/ID with these files:
 *
 *   meta         an EROFS image of inodes and directories, without contents
 *   0, 1, ...    the contents of its layers, which `meta` names as devices, in this order
 *
 * Our own writer makes `meta`, and a checker walks it before it gets this name, because the host's
 * kernel parses it (docs/internals/worlds.md).
 *
 * A world is mounted once for each tenant that uses it, and sandboxes get clones with their ids
 * mapped. So the sandboxes of a tenant share inodes and page cache, and two tenants never do. */
#pragma once

#include "lib/base/err.h"
#include "lib/base/ids.h"

#define WORLD_BLOBS_MAX 128

/* Where a world is; the descriptor stays the caller's. */
struct world_source {
    char id[ID_LEN + 1];
    int dir;
};

/* Mounts the world that is in this directory, read-only: from its files, or where the kernel cannot, from
 * loop devices. It is kept (attach.h): let it go before it is closed. */
int world_mount(int dir, int *ret, struct sg_error *e);

/* Whether a layer over the world changes what is in /usr, aside from what is in /usr/local. Then the
 * world's own /usr may not lie over the sandbox's. Looks at no more than four names. */
bool world_is_changed_by(int at, const char *layer);
/* Whether it changes Python's packages in /usr/local/lib: something else may be there, such as what
 * `npm install -g` puts there. Looks at no more than PACKAGES_NAMES names. */
#define PACKAGES_NAMES 64
bool world_packages_are_changed_by(int at, const char *layer);
