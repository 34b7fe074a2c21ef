/* Puts source code into a sandbox that this process runs. */
#pragma once

#include "cli/shared/acp_source.h"
#include <sandglass.h>

/* The outcome, which tells whose fault a failure was. */
enum acp_source_outcome {
    ACP_SOURCE_DONE,
    ACP_SOURCE_BAD,         /* the archive or directory */
    ACP_SOURCE_NO_ROOM,     /* the sandbox's limits */
    ACP_SOURCE_TIMEOUT,     /* the time limit came first */
    ACP_SOURCE_INTERRUPTED, /* interrupt_fd became readable */
    ACP_SOURCE_BROKEN,      /* a fault of our own */
};

struct acp_source_call {
    struct sg_sandbox *sandbox_id;
    const char *user, *into;
    uint64_t timeout_ms;
    int interrupt_fd;
};

/* Unpacks the source in the sandbox. *count is filled in for a directory, and zero for an archive.
 * *e says why, unless the outcome is ACP_SOURCE_DONE. */
enum acp_source_outcome acp_source_put(const struct acp_source *s,
                                       const struct acp_source_call *call,
                                       struct acp_tar_count *count, struct sg_error *e);
