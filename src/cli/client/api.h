/* The control plane: REST with JSON. An error of the server becomes our error, with the server's
 * message. Its code tells callers what matters to them: -ENOENT not there, -EEXIST not in this
 * state, -EACCES not allowed. */
#pragma once

#include "lib/text/strbuf.h"
#include "cli/client/client.h"

struct json_t;

struct api_request {
    const char *method;
    const struct strbuf *body; /* JSON; NULL: none */
    uint64_t more_ms;          /* more than the usual time for an answer */
    struct json_t **refusal;   /* gets the whole JSON of a refusal, NULL if it was not JSON */
    char *next;                /* gets the token of the next page: WEB_TOKEN_MAX bytes */
};
/* Makes one call. The format makes the path, which begins with a slash and may have a query. *ret
 * gets the answer; ret may be NULL. */
int api_ask(struct client *c, const struct api_request *q, struct json_t **ret, struct sg_error *e,
            const char *path, ...) PRINTF(5, 6);
#define api_call(c, verb, json, ret, e, ...) \
    api_ask(c, &(struct api_request){.method = (verb), .body = (json)}, ret, e, __VA_ARGS__)
#define api_get(c, ret, e, ...) api_call(c, "GET", NULL, ret, e, __VA_ARGS__)
/* Gets an array, page by page to its end. */
int api_list(struct client *c, const char *path, struct json_t **ret, struct sg_error *e);
/* Gets an object of /v1 whose member `list` comes in pages: the first answer, with all of the list. */
int api_pages(struct client *c, const char *path, const char *list, struct json_t **ret,
              struct sg_error *e);

/* Turns an answer that is no success into an error. */
struct web_reply;
int api_refusal(const struct web_reply *reply, struct sg_error *e);

#define API_PATH_MAX (16u * 1024)
