/* Answers that several routes give. */
#pragma once

#include "lib/text/json.h"
#include "front/contexts/context.h"
#include "front/e2b/request.h"

#define REPLY_MAX (64u * 1024) /* a few contexts: their texts are bounded */
/* The checkpoints of a sandbox, or the report on its kernels. */
#define REPLY_LONG_MAX (1024u * 1024)

/* True: there is an answer to write. False: an error or a redirect has been answered. */
bool reply_usable(struct e2b_req *q, const struct context_answer *a);
/* The same where only an active context will do: an unknown one has ended. */
bool reply_usable_active(struct e2b_req *q, const struct context_answer *a);
/* The same as reply_usable in a callback of the context manager or of the store; calls e2b_back
 * first. False also if the client has gone. */
bool reply_came(struct e2b_req *q, const struct context_answer *a);
bool reply_came_of_store(struct e2b_req *q, const struct ctx_reply *reply);
void reply_failed(struct e2b_req *q, int r, const struct sg_error *e);

/* Answers 200, with the row. */
void reply_context(struct e2b_req *q, const struct ctx_row *row);
/* Answers 404. The answer is the same for an unknown context and for another tenant's. */
void reply_no_context(struct e2b_req *q, const char *id);
