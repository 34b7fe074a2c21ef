/* Checkpoints of a sandbox over HTTP; not a part of E2B's API. */
#pragma once

#include "front/core/checkpoint.h"
#include "front/e2b/field.h"

/* Reads `waitMs` of a body: how long to wait for a running cell to end. */
static inline uint64_t checkpoint_wait_field(struct fields *in)
{
    return field_count(in, "waitMs", 0, CHECKPOINT_WAIT_MAX_MS, 0);
}

/* Reads `accept` of a body: whether the files alone are enough if kernels are lost. */
bool checkpoint_accept_field(struct fields *in);

void checkpoint_create(struct http_req *req);
void checkpoint_list(struct http_req *req);
void checkpoint_delete(struct http_req *req);
void e2b_sandbox_rewind(struct http_req *req);
