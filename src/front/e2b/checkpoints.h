/* Checkpoints of a sandbox over HTTP; not a part of E2B's API. */
#pragma once

#include "front/core/checkpoint.h"
#include "front/e2b/field.h"
#include "front/e2b/request.h"

/* Reads `waitMs` of a body: how long to wait for a running cell to end. */
static inline uint64_t checkpoint_wait_field(struct fields *in)
{
    return field_count(in, "waitMs", 0, CHECKPOINT_WAIT_MAX_MS, 0);
}

/* Reads `accept` of a body: whether the files alone are enough if kernels are lost. */
bool checkpoint_accept_field(struct fields *in);

/* Writes a member `checkpoints`: those of a sandbox, or an empty list if it is NULL. */
void checkpoints_put(struct json *j, struct sandbox *b);
/* Answers with the error of an order that a report on kernels belongs to. */
void checkpoint_failed(struct e2b_req *q, int r, const struct sg_error *e, const json_t *report);

void checkpoint_create(struct http_req *req);
void checkpoint_list(struct http_req *req);
void checkpoint_delete(struct http_req *req);
void e2b_sandbox_rewind(struct http_req *req);
