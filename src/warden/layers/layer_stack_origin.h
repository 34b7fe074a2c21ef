/* Inode numbers that stay when files are frozen.
 *
 * A program may remember the inode number of a file that it has open and look again whether its
 * name still has that number: SQLite writes to no database that seems to have been replaced. An
 * overlay shows for a file of its upper layer the number of the *origin*, the lower file that it is
 * a copy of, which an attribute of the copy says as a file handle:
 *
 *   byte  0         1        2         3             4            5..20                  21..
 *         version 0 magic fb length    byte order    handle type  uuid of the origin's   handle
 *                            of all                               file system
 *
 * It asks for it each time, and shows the origin's number only if the origin is there and has one
 * link; else the copy's own. A lower file's origin is not looked at. So a number stays for ever if
 * every copy of a file says the first origin, and that one lives on, alone: layer_stack_carry sees
 * to the former. For the latter there is a directory beside the layers with an entry for each such
 * inode, named by number: a *kept* origin gets no second link when layers are merged, and when its
 * layer is removed it takes its entry's place, emptied. */
#pragma once

#include <sys/types.h>

#include "lib/base/err.h"

#define ORIGIN_MAX  160
#define ORIGIN_UUID 16
#define ORIGIN_NAME 24 /* an inode number in words */

struct origin {
    size_t len;
    unsigned char v[ORIGIN_MAX];
};

/* What identifies a file system; fd: anything on it, but not O_PATH. -ENOTTY before Linux 6.9. */
int origin_file_system(int fd, unsigned char ret[ORIGIN_UUID]);
/* -ENODATA: the file is no copy, or of what is not known. */
int origin_get(int fd, struct origin *ret);
int origin_set(int fd, const struct origin *o);
/* That of a copy of this file. */
int origin_make(int fd, struct origin *ret);
bool origin_is_on(const struct origin *o, const unsigned char uuid[ORIGIN_UUID]);
/* The origin itself, as O_PATH; dir: a directory of its file system. -ESTALE: it is gone. */
int origin_open(const struct origin *o, int dir, int *ret);

/* Keeps a file of the scratch as an origin. -EMLINK: so many are kept that this one is not. */
int origin_keep(int scratch, ino_t number);
/* The directory of those; -ENOENT: there are none. */
int origin_open_kept(int scratch, int *ret);
void origin_name(ino_t number, char ret[ORIGIN_NAME]);
/* kept: or -1. */
bool origin_is_kept(int kept, ino_t number);
