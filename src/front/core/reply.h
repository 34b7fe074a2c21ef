/* Answers in the shapes that E2B's programs expect. */
#pragma once

#include "lib/text/json.h"
#include "front/core/sandbox.h"

/* {"code":status,"message":"...","requestId":"..."} */
void reply_error(struct http_req *req, int status, const char *fmt, ...) PRINTF(3, 4);
/* For an error answer of another shape: the member "requestId", and what the log is to say. */
void reply_put_fault(struct http_req *req, struct json *j, int status, const char *message);
/* The status that goes with the error's kind and errno, and its message. An internal one is logged
 * and answered without detail. 503 says when to try again. */
void reply_sg_error(struct http_req *req, const struct sg_error *e);
int status_of_error(const struct sg_error *e);
/* The status that goes with how an agent says that an operation ended: a positive errno. That is
 * about what is inside, whatever it is, and never the server's fault. */
int status_of_call(int status);
void reply_json(struct http_req *req, int status, const struct strbuf *json);
void reply_empty(struct http_req *req, int status);
/* 404 with the one message that unknown and foreign sandboxes get. Of one that the tenant had, and
 * that has ended by no wish of his, it says why. */
void reply_no_sandbox(struct http_req *req, const char *tenant, const char *id);
/* 307 to the server that has what was asked for, with the same target: method and body stay. */
void reply_elsewhere(struct http_req *req, const char *url);
/* The header that says where, for an answer with a body of its own. */
void reply_add_location(struct http_req *req, const char *url);
/* 502, on the data plane: the sandbox is not there, or is paused and may not be woken. One that has
 * ended by no wish of its user's: with the reason, and whose doing it was. */
void reply_gone(struct http_req *req, const struct sandbox *b);
/* The same, of one that is not in the table. */
void reply_unknown(struct http_req *req, const char *id);
/* CORS, on the data plane: the headers of every answer, and the answer to a preflight. */
void reply_add_cors(struct http_req *req);
void reply_preflight(struct http_req *req);
/* Whether a tree of the body's JSON is small enough to be made. -EINVAL: too deep; -E2BIG. */
int body_weight_check(const char *body, size_t len, struct sg_error *e);
/* A body as JSON, for http_body_make: bounded depth and weight, no duplicate keys, no trailing
 * bytes. An empty body gives an empty object. */
struct json_made {
    json_t *value; /* or NULL, and why */
    bool empty;
    struct sg_error heavy;
    json_error_t wrong;
};
extern const struct http_make json_make;
/* Takes what was made. NULL: 400 or 413 was answered. */
json_t *request_json(struct http_req *req, void *made);
