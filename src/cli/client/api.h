/* The control plane: REST with JSON. Errors of the server become ours, with its message; the code
 * tells what matters to callers: -ENOENT not there, -EEXIST not in this state, -EACCES not allowed.
 */
#pragma once

#include "lib/text/strbuf.h"
#include "cli/client/client.h"

struct json_t;

/* `path` begins with a slash and may have a query. body: JSON, NULL for none. *ret gets the answer;
 * ret may be NULL. */
int api_call(struct client *c, const char *method, const char *path, const struct strbuf *body,
             struct json_t **ret, struct sg_error *e);
struct api_request {
    const char *method, *path;
    const struct strbuf *body;
    uint64_t more_ms; /* that the server may take for it beyond what is usual */
};
/* The same for a request whose refusal says more than its message: *ret_refusal gets all of that,
 * NULL if it was no JSON. */
int api_ask(struct client *c, const struct api_request *q, struct json_t **ret,
            struct json_t **ret_refusal, struct sg_error *e);
/* Newer servers have this route below /v2, older ones do not. */
int api_call_newest(struct client *c, const char *path, const struct strbuf *body_v2,
                    const struct strbuf *body_v1, struct json_t **ret, struct sg_error *e);
/* GET of an array, page by page to its end. */
int api_list(struct client *c, const char *path, struct json_t **ret, struct sg_error *e);

/* What an answer that is no success means; `what` names the thing that was asked for. */
struct web_reply;
int api_refusal(const struct web_reply *reply, struct sg_error *e);

/* "/sandboxes/ID<rest>" */
void api_path(struct strbuf *path, const char *id, const char *rest);
#define API_PATH_MAX (16u * 1024)
