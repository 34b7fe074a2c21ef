/* A directory as a tar: files, directories and links, with their modes and times. Names that a
 * header has no room for are in one of pax. Owners are not kept: inside, everything is the user's.
 *
 * Nothing is followed: a link is stored as the text that it is, also one that leads out, and a name
 * is opened below its directory alone. What is neither file, directory nor link is left out and
 * counted. A file that changes while it is read has the length that it had at first. */
#pragma once

#include "lib/base/err.h"

#define ACP_TAR_DEPTH_MAX 128

struct acp_tar_count {
    uint64_t files, bytes;
    uint64_t left_out;
    char first_left_out[256]; /* its path */
};

/* All that is below the directory `dir`, written to `out`. `name` is the directory's in errors. An
 * error of writing is -EPIPE or such, and others' are about what could not be read. */
int acp_tar_write(int dir, const char *name, int out, struct acp_tar_count *ret,
                  struct sg_error *e);
