/* Port 49983 of a sandbox, as E2B's SDKs speak to it. E2B runs a program for this inside the
 * sandbox; here the front answers, and the agent inside does the work (wire/agent.h).
 *
 *   envd.c          who may ask, which part answers, CORS
 *   process*.c      process.Process         (Connect RPC: lib/rpc/rpc.h)
 *   filesystem*.c   filesystem.Filesystem   (the same)
 *   watch*.c        watches of directories: as a stream, and polled
 *   service.c       code that the two services share;  messages.h: their messages
 *   files*.c        GET and POST /files, POST /files/compose
 *   http_small.c    GET /health, /metrics, /envs */
#pragma once

#include "wire/agent.h"
#include "front/core/sandbox.h"
#include "lib/http/http.h"

/* Answers a request to a running sandbox. Code that answers later holds a reference to the sandbox
 * for as long as the request lives. */
void envd_request(struct sandbox *b, struct http_req *req);
/* Whether the request carries the sandbox's token, or a signature made with the token. Also asked
 * before a paused sandbox is woken: a client that may not talk to a sandbox may not wake it
 * either. */
bool envd_allows(const struct sandbox *b, struct http_req *req);
/* The sandbox whose token the request carries, for a request that names none: E2B's SDKs from 2.7 to
 * 2.16, given E2B_SANDBOX_URL, send nothing else to /files and /health. NULL: there is none. */
struct sandbox *envd_sandbox_by_token(struct front *f, const struct http_req *req);

/* The routes that are not RPC. If the sandbox has an access token, the caller has checked it for
 * all of them but /health, which needs none, and /files, which checks token and signature by
 * itself. CORS headers have been added. */
void envd_health(struct sandbox *b, struct http_req *req);
void envd_metrics(struct sandbox *b, struct http_req *req);
void envd_envs(struct sandbox *b, struct http_req *req);
void envd_files_get(struct sandbox *b, struct http_req *req);
void envd_files_post(struct sandbox *b, struct http_req *req);
void envd_files_compose(struct sandbox *b, struct http_req *req);

/* The path that `given` means for a user: "~" and relative paths start at the user's home. It is
 * absolute for "user" and "root". The homes of others are the sandbox's, so of their paths only the
 * "~" is taken away. */
int envd_path(const char *user, const char *given, char ret[OPS_PATH_MAX], struct sg_error *e);

/* Puts the user of a request about files, which are worked on as E2B does it: with root's rights, and
 * what is made or written belongs to the user. */
void envd_put_user(struct strbuf *request, const char *user);

/* Message of the 401 that a missing or wrong access token gets. */
#define ENVD_UNAUTHORIZED                                                            \
    "unauthorized access, please provide a valid access token or method signing if " \
    "supported"
