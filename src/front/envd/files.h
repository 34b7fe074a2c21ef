/* GET and POST /files: whole files in and out of a sandbox, streamed.
 *
 *   files.c        who may ask, whose permissions count, which path is meant
 *   files_get.c    downloads
 *   files_post.c   uploads: the body's encodings and parts
 *   files_write.c  one file on its way to the agent
 *   files_compose.c  several files become one
 *   files_text.c   ranges, names, metadata
 *   signature.c    signed addresses */
#pragma once

#include "wire/agent.h"
#include "front/core/sandbox.h"
#include "lib/http/http.h"

/* The user and the path that a request to /files names. */
struct files_target {
    char user[OPS_NAME_MAX + 1];
    const char *path; /* as in the query, or NULL if it has none; lives as long as the request */
};

enum files_access { FILES_READ, FILES_WRITE };

/* The sandbox whose token made the request's signature, for a request that names no sandbox. NULL:
 * there is none, and the request deserves the same 401 as a wrong signature. An expired signature
 * still finds its sandbox: the check of that sandbox's request says that it has expired. */
struct sandbox *files_sandbox_by_signature(struct front *f, struct http_req *req);

/* Whether the request has the right token or the right signature. */
bool files_allow(const struct sandbox *b, struct http_req *req);
/* Checks token or signature, and the user's name. False: the request has been answered. */
bool files_admit(struct sandbox *b, struct http_req *req, enum files_access access,
                 struct files_target *ret);
/* envd_path. False: the request has been answered with 400. */
bool files_resolve(struct http_req *req, const char *user, const char *given,
                   char ret[OPS_PATH_MAX]);
/* Answers a request whose operation on `path` failed: `status` is as in front/core/call.h, not
 * 0. */
void files_fail(struct http_req *req, const struct sandbox *b, const struct files_target *t,
                const char *path, int status, const char *message);
/* The status, for files_fail, of a call that could not begin because of this error. */
int files_begin_status(const struct sg_error *e);
