/* Source code for an agent: a directory, a tar or a bundle of git, put into its sandbox before it
 * starts. A directory becomes a tar on the way (acp_tar.h). Everything is unpacked inside, by a
 * program of kernels/acp and as the agent's user: what is wrong with an archive is wrong in there.
 */
#pragma once

#include "cli/acp_tar.h"

enum acp_source_kind { ACP_SOURCE_DIRECTORY, ACP_SOURCE_TAR, ACP_SOURCE_BUNDLE };

struct acp_source {
    enum acp_source_kind kind;
    const char *path;
    int fd; /* -1: none */
};

/* Looks what it is. Errors are the caller's. */
int acp_source_open(const char *path, struct acp_source *ret, struct sg_error *e);
void acp_source_close(struct acp_source *s);

/* Who is to blame if it did not work. */
enum acp_source_outcome {
    ACP_SOURCE_DONE,
    ACP_SOURCE_BAD,         /* what came in */
    ACP_SOURCE_NO_ROOM,     /* the sandbox's limits */
    ACP_SOURCE_TIMEOUT,     /* the time limit came first */
    ACP_SOURCE_INTERRUPTED, /* interrupt_fd */
    ACP_SOURCE_BROKEN,      /* we are */
};

struct acp_source_call {
    struct sg_sandbox *sandbox;
    const char *user, *into;
    uint64_t timeout_ms;
    int interrupt_fd;
};

/* *count is of a directory. *e says why unless it is done. */
enum acp_source_outcome acp_source_put(const struct acp_source *s,
                                       const struct acp_source_call *call,
                                       struct acp_tar_count *count, struct sg_error *e);
