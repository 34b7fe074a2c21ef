/* The control plane: REST with JSON. An error of the server becomes our error, with the server's
 * message. Its code tells callers what matters to them: -ENOENT not there, -EEXIST not in this
 * state, -EACCES not allowed. */
#pragma once

#include "lib/text/strbuf.h"
#include "cli/client/client.h"

struct json_t;

/* Makes one call. `path` begins with a slash and may have a query. body: JSON, NULL for none. *ret
 * gets the answer; ret may be NULL. */
int api_call(struct client *c, const char *method, const char *path, const struct strbuf *body,
             struct json_t **ret, struct sg_error *e);
struct api_request {
    const char *method, *path;
    const struct strbuf *body;
    uint64_t more_ms; /* more than the usual time for an answer */
};
/* The same for a request whose refusal says more than a message: *ret_refusal gets the whole JSON
 * of the refusal, NULL if it was not JSON. */
int api_ask(struct client *c, const struct api_request *q, struct json_t **ret,
            struct json_t **ret_refusal, struct sg_error *e);
/* A POST that newer servers have below /v2 and older ones do not: tries /v2 first, then without. */
int api_call_newest(struct client *c, const char *path, const struct strbuf *body_v2,
                    const struct strbuf *body_v1, struct json_t **ret, struct sg_error *e);
/* Gets an array, page by page to its end. */
int api_list(struct client *c, const char *path, struct json_t **ret, struct sg_error *e);
/* Gets an object of /v1 whose member `list` comes in pages: the first answer, with all of the list. */
int api_pages(struct client *c, const char *path, const char *list, struct json_t **ret,
              struct sg_error *e);

/* Turns an answer that is no success into an error. */
struct web_reply;
int api_refusal(const struct web_reply *reply, struct sg_error *e);

/* Makes "/sandboxes/ID<rest>". */
void api_path(struct strbuf *path, const char *id, const char *rest);
#define API_PATH_MAX (16u * 1024)
