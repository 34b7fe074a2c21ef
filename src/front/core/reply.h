/* Answers in the shapes that E2B's programs expect. */
#pragma once

#include "lib/text/json.h"
#include "front/core/sandbox.h"

/* {"code":status,"message":"..."}, on routes of ours with "requestId":"..." too. */
void reply_error(struct http_req *req, int status, const char *fmt, ...) PRINTF(3, 4);
/* For error answers of another shape: writes the member "requestId" on routes of ours, and sets the
 * message for the log. */
void reply_put_fault(struct http_req *req, struct json *j, int status, const char *message);
/* Answers with the status that fits the error's kind and errno, and with its message. An internal
 * error is logged and answered without detail. A 503 says when to try again. */
void reply_sg_error(struct http_req *req, const struct sg_error *e);
int status_of_error(const struct sg_error *e);
/* The HTTP status for the end of an agent's operation, given as a positive errno. Such an error
 * always concerns the inside of the sandbox and is never the server's fault. */
int status_of_call(int status);
void reply_json(struct http_req *req, int status, const struct strbuf *json);
void reply_empty(struct http_req *req, int status);
/* Answers 404, with the same message for unknown sandboxes and those of other tenants. If the
 * tenant had the sandbox and it ended against the tenant's wish, the message says why. */
void reply_no_sandbox(struct http_req *req, const char *tenant, const char *id);
/* Redirects (307) to the same target on the server that has the sandbox: the client repeats method
 * and body. */
void reply_elsewhere(struct http_req *req, const char *url);
/* Adds only the Location header, for an answer with a body of its own. */
void reply_add_location(struct http_req *req, const char *url);
/* Answers 502 on the data plane: the sandbox is gone, or is paused and may not be woken. If it
 * ended against its user's wish, the answer gives the reason and who caused it. */
void reply_gone(struct http_req *req, const struct sandbox *b);
/* The same for a sandbox that is not in the table. */
void reply_unknown(struct http_req *req, const char *id);
/* CORS, on the data plane: the headers of every answer, and the answer to a preflight. */
void reply_add_cors(struct http_req *req);
void reply_preflight(struct http_req *req);
/* Checks that the JSON of a body is small enough to parse. -EINVAL: nested too deep; -E2BIG. */
int body_weight_check(const char *body, size_t len, struct sg_error *e);
/* A body parsed as JSON, for http_body_make. Depth and size are limited; duplicate keys and
 * trailing bytes are refused. An empty body gives an empty object. */
struct json_made {
    json_t *value; /* NULL: the errors below say why */
    bool empty;
    struct sg_error heavy;
    json_error_t wrong;
};
extern const struct http_make json_make;
/* Takes the value out of `made`. NULL: the request was answered with 400 or 413. */
json_t *request_json(struct http_req *req, void *made);
