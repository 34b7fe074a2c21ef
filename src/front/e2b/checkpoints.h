/* Checkpoints of a sandbox over HTTP; not a part of E2B's API. */
#pragma once

#include <jansson.h>

#include "lib/base/err.h"

struct http_req;

/* Reads `waitMs` of a body: how long to wait for a running cell to end. */
int checkpoint_wait_field(const json_t *body, uint64_t *ret_ms, struct sg_error *e);

/* Reads `accept` of a body: whether the files alone are enough if kernels are lost. */
int checkpoint_accept_field(const json_t *body, bool *ret_files_do, struct sg_error *e);

void checkpoint_create(struct http_req *req);
void checkpoint_list(struct http_req *req);
void checkpoint_delete(struct http_req *req);
void e2b_sandbox_rewind(struct http_req *req);
