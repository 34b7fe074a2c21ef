/* GET and POST /files: whole files in and out of a sandbox, streamed.
 *
 *   files.c        who may, whose permissions, which path
 *   files_get.c    downloads
 *   files_post.c   uploads: the body's encodings and parts
 *   files_write.c  one file on its way to the agent
 *   files_text.c   ranges, names, metadata
 *   signature.c    signed addresses */
#pragma once

#include "wire/agent.h"
#include "front/core/sandbox.h"
#include "lib/http/http.h"

/* What a request to /files is about. */
struct files_target {
    char user[OPS_NAME_MAX + 1];
    const char *path; /* as in the query, or NULL if it has none; lives as long as the request */
};

enum files_access { FILES_READ, FILES_WRITE };

/* The sandbox of a signed request that names none, or NULL: then it deserves the same 401 as a
 * wrong signature. That it has expired is not looked at: that is said by the sandbox. */
struct sandbox *files_sandbox_by_signature(struct front *f, struct http_req *req);

/* Whether token or signature are right. */
bool files_allow(const struct sandbox *b, struct http_req *req);
/* Checks token or signature, and the user's name. False: it was answered. */
bool files_admit(struct sandbox *b, struct http_req *req, enum files_access access,
                 struct files_target *ret);
/* envd_path; false: 400 was answered. */
bool files_resolve(struct http_req *req, const char *user, const char *given,
                   char ret[OPS_PATH_MAX]);
/* Answers an operation on `path` that ended with this status (see call.h), which is not 0. */
void files_fail(struct http_req *req, const struct sandbox *b, const struct files_target *t,
                const char *path, int status, const char *message);
/* The status of a call that could not begin with this error, for files_fail. */
int files_begin_status(const struct sg_error *e);
