/* Answers that several routes give. */
#pragma once

#include "lib/text/json.h"
#include "front/contexts/context.h"
#include "front/e2b/request.h"

#define REPLY_MAX (64u * 1024) /* a few contexts: their texts are bounded */
/* Checkpoints of a sandbox, or what became of its kernels. */
#define REPLY_LONG_MAX (1024u * 1024)

/* True if there is an answer to write; false: an error or a redirect has been answered. */
bool reply_usable(struct e2b_req *q, const struct context_answer *a);
/* The same when it comes back (e2b_back), from the manager or the store. False also: nobody waits
 * any more. */
bool reply_came(struct e2b_req *q, const struct context_answer *a);
bool reply_came_of_store(struct e2b_req *q, const struct ctx_reply *reply);
void reply_failed(struct e2b_req *q, int r, const struct sg_error *e);
/* A member `checkpoints`: those of a sandbox, or none if that is NULL. */
void reply_put_checkpoints(struct json *j, struct sandbox *b);

/* An answer that is an object: what is written between the two are its fields. */
struct reply {
    struct strbuf text;
    struct json json;
};
struct json *reply_begin(struct reply *r, size_t max);
void reply_send(struct e2b_req *q, int status, struct reply *r);
/* 200, with the row. */
void reply_context(struct e2b_req *q, const struct ctx_row *row);
/* 404, in the same way whether it is unknown or another's. */
void reply_no_context(struct e2b_req *q, const char *id);
/* 404 of one that must be active. */
void reply_ended(struct e2b_req *q);
