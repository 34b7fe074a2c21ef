/* Origins: keep inode numbers when files are frozen.
 *
 * A program may remember the inode number of an open file, and check later whether the file's name
 * still has that number: SQLite does not write to a database that seems to have been replaced. For
 * a file of its upper layer, an overlay shows the number of the *origin*, the lower file that it is
 * a copy of. An attribute of the copy names the origin by a file handle:
 *
 *   byte  0         1        2         3             4            5..20                  21..
 *         version 0 magic fb length    byte order    handle type  uuid of the origin's   handle
 *                            of all                               file system
 *
 * The overlay looks at the origin each time, and shows its number only if the origin exists and has
 * one link; otherwise the copy's own. It does not look at a lower file's origin. So a number stays
 * for ever under two conditions: every copy of a file names the first origin, and that origin lives
 * on with a single link. layer_stack_carry ensures the first. For the second, a directory beside
 * the layers has an entry for each such inode, named by its number: such a *kept* origin gets no
 * second link when layers are merged, and when its layer is removed, the emptied file takes the
 * place of its entry. */
#pragma once

#include <sys/types.h>

#include "lib/base/err.h"

#define ORIGIN_MAX  160
#define ORIGIN_UUID 16
#define ORIGIN_NAME 24 /* an inode number as text */

struct origin {
    size_t len;
    unsigned char v[ORIGIN_MAX];
};

/* The id of a file system, or of a subvolume of btrfs, where inodes are numbered anew; fd: any file
 * on it, but not O_PATH. -ENOTTY before Linux 6.9. */
int origin_file_system(int fd, unsigned char ret[ORIGIN_UUID]);
/* -ENODATA: the file is no copy, or its origin is unknown. */
int origin_get(int fd, struct origin *ret);
int origin_set(int fd, const struct origin *o);
/* The origin that a copy of this file would name. */
int origin_make(int fd, struct origin *ret);
bool origin_is_on(const struct origin *o, const unsigned char id[ORIGIN_UUID]);
/* The number of the origin's inode, which its handle holds on tmpfs and on btrfs; else 0. Only root of
 * the host could open it by its handle. */
ino_t origin_inode(const struct origin *o);
/* Whether the origin is this very file. */
bool origin_is_of(const struct origin *o, int fd);

/* Keeps a file of the scratch as an origin. -EMLINK: too many are kept already. */
int origin_keep(int scratch, ino_t number);
/* Opens the directory of kept origins; -ENOENT: there are none. */
int origin_open_kept(int scratch, int *ret);
void origin_name(ino_t number, char ret[ORIGIN_NAME]);
/* kept: that directory, or -1. */
bool origin_is_kept(int kept, ino_t number);
