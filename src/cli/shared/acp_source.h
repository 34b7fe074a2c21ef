/* Source code for a hosted agent: a directory, a tar or a git bundle that is put into the agent's
 * sandbox before the agent starts. A directory becomes a tar on the way (acp_tar.h). Archives are
 * hostile, so kernels/acp/unpack.py unpacks them inside the sandbox, as the agent's user: whatever
 * a bad archive does, it does in there. */
#pragma once

#include "cli/shared/acp_tar.h"

enum acp_source_kind { ACP_SOURCE_DIRECTORY, ACP_SOURCE_TAR, ACP_SOURCE_BUNDLE };

struct acp_source {
    enum acp_source_kind kind;
    const char *path;
    int fd; /* -1: closed */
};

/* Opens the path and finds out its kind: a directory, or a file by its suffix. Every error is the
 * caller's mistake. */
int acp_source_open(const char *path, struct acp_source *ret, struct sg_error *e);
void acp_source_close(struct acp_source *s);
