/* Answers that several routes give. */
#pragma once

#include "context/context.h"
#include "e2b/request.h"

#define REPLY_MAX (64u * 1024) /* a few contexts: their texts are bounded */

/* True if there is an answer to write; false: an error or a redirect has been answered. */
bool reply_usable(struct e2b_req *q, const struct context_answer *a);
void reply_failed(struct e2b_req *q, int r, const struct sg_error *e);
/* 200, with the row. */
void reply_context(struct e2b_req *q, const struct ctx_row *row);
/* 404, in the same way whether it is unknown or another's. */
void reply_no_context(struct e2b_req *q, const char *id);
