/* Source code for an agent: a directory, a tar or a bundle of git, put into its sandbox before it
 * starts. A directory becomes a tar on the way (acp_tar.h). Everything is unpacked inside, by a
 * program of kernels/acp and as the agent's user: what is wrong with an archive is wrong in there.
 */
#pragma once

#include "cli/shared/acp_tar.h"

enum acp_source_kind { ACP_SOURCE_DIRECTORY, ACP_SOURCE_TAR, ACP_SOURCE_BUNDLE };

struct acp_source {
    enum acp_source_kind kind;
    const char *path;
    int fd; /* -1: none */
};

/* Looks what it is. Errors are the caller's. */
int acp_source_open(const char *path, struct acp_source *ret, struct sg_error *e);
void acp_source_close(struct acp_source *s);
