/* Puts source code into a sandbox of this process. */
#pragma once

#include "cli/shared/acp_source.h"
#include <sandglass.h>

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
    struct sg_sandbox *sandbox_id;
    const char *user, *into;
    uint64_t timeout_ms;
    int interrupt_fd;
};

/* *count is of a directory. *e says why unless it is done. */
enum acp_source_outcome acp_source_put(const struct acp_source *s,
                                       const struct acp_source_call *call,
                                       struct acp_tar_count *count, struct sg_error *e);
