/* Reads the bodies of requests. Fields that are null count as absent: the Python SDK sends all of
 * them. */
#pragma once

#include <jansson.h>

#include "wire/agent.h"
#include "lib/http/http.h"

/* The code, with room for its escapes, and the variables. */
#define EXECUTE_BODY_MAX (KERNEL_CODE_MAX + 4u * 1024 * 1024)
#define CONTEXT_BODY_MAX (64u * 1024)
#define LANGUAGE_MAX     256 /* bytes of a language's name */

struct execute_request {
    json_t *body; /* code and envs point into it; the caller releases it */
    const char *code;
    size_t code_len;
    char context[KERNEL_ID_LEN + 1]; /* "" if none was given */
    char language[LANGUAGE_MAX + 1];
    json_t *envs; /* object of strings, or NULL */
    uint64_t timeout_ms;
};

struct context_request {
    char language[LANGUAGE_MAX + 1];
    char cwd[OPS_PATH_MAX]; /* "": the home directory */
};

/* For http_body_make. execute_request_take reads the object that it makes. */
extern const struct http_make interpreter_make;
/* Both return false if the request was refused. */
bool execute_request_take(struct http_req *req, void *made, struct execute_request *ret);
bool context_request_parse(struct http_req *req, const char *body, size_t len,
                           struct context_request *ret);
