/* Writes a directory as a tar: files, directories and links, with their modes and times. A name
 * that is too long for a tar header goes into a pax header. Owners are not kept: inside, everything
 * belongs to the user.
 *
 * No link is followed. A link is stored as its text, even one that leads out of the directory, and
 * every name is opened relative to its own directory. Everything that is neither file, directory
 * nor link is left out and counted. A file that changes while it is read keeps the length that it
 * had at first. */
#pragma once

#include "lib/base/err.h"

#define ACP_TAR_DEPTH_MAX 128

struct acp_tar_count {
    uint64_t files, bytes;
    uint64_t left_out;
    char first_left_out[256]; /* path of the first one that was left out */
};

/* Writes everything below the directory `dir` to `out`. Error messages call the directory `name`.
 * An error of writing is -EPIPE or the like; all other errors say what could not be read. */
int acp_tar_write(int dir, const char *name, int out, struct acp_tar_count *ret,
                  struct sg_error *e);
