#include "front/envd/files.h"

#include <string.h>

#include "lib/base/clock.h"
#include "front/envd/envd.h"
#include "front/envd/signature.h"
#include "front/core/call.h"
#include "front/core/defaults.h"
#include "front/core/reply.h"

static struct signed_request signed_request_of(struct http_req *req, enum files_access access)
{
    const char *path = http_query_get(req, "path"), *user = http_query_get(req, "username");

    return (struct signed_request){.path = path ? path : "",
                                   .operation = access == FILES_WRITE ? "write" : "read",
                                   .user = user ? user : "",
                                   .expiry = http_query_get(req, "signature_expiration")};
}

static bool signed_by(struct http_req *req, enum files_access access, const char *token,
                      const char *signature)
{
    struct signed_request r = signed_request_of(req, access);
    AUTO(signature_check_free_p) struct signature_check *c = signature_check_new(&r);

    return c && signature_matches(c, token, signature);
}

/* NULL: the request may go on. Otherwise the reason why it may not. */
static const char *refusal(const struct sandbox *b, struct http_req *req, enum files_access access)
{
    const char *token = b->spec.envd_token, *header = http_header_get(req, "x-access-token");

    if (token[0] == '\0')
        return NULL;
    if (header && header[0] != '\0')
        return token_equal(header, token) ? NULL
                                          : "access token present in header but does not match";
    const char *signature = http_query_get(req, "signature");
    if (!signature)
        return "missing signature query parameter";
    if (!signed_by(req, access, token, signature))
        return "invalid signature";
    const char *expiry = http_query_get(req, "signature_expiration");
    if (expiry && signature_expired(expiry, clock_wall_ms() / 1000))
        return "signature is already expired";
    return NULL;
}

bool files_allow(const struct sandbox *b, struct http_req *req)
{
    return refusal(b, req, req->method == HTTP_M_GET ? FILES_READ : FILES_WRITE) == NULL;
}

struct sandbox *files_sandbox_by_signature(struct front *f, struct http_req *req)
{
    const char *signature = http_query_get(req, "signature");

    if (!signature || !signature_shaped(signature) ||
        (req->method != HTTP_M_GET && req->method != HTTP_M_POST))
        return NULL;
    struct signed_request r =
        signed_request_of(req, req->method == HTTP_M_POST ? FILES_WRITE : FILES_READ);
    AUTO(signature_check_free_p) struct signature_check *check = signature_check_new(&r);
    if (!check)
        return NULL;
    SANDBOXES_EACH(b, f)
        if (b->spec.envd_token[0] != '\0' &&
            signature_matches(check, b->spec.envd_token, signature))
            return b;
    return NULL;
}

static void reply_no_user(struct http_req *req, const char *user)
{
    reply_error(req, 401, "error looking up user '%.64s': user: unknown user %.64s", user, user);
}

/* Refuses a query value with a NUL byte: http_query_get returns NULL for it, so the parameter would
 * count as not given. */
static bool query_clean(struct http_req *req)
{
    static const char *const names[] = {"path", "username", "signature", "signature_expiration"};

    for (size_t i = 0; i < ARRAY_SIZE(names); i++)
        if (http_query_has(req, names[i]) && !http_query_get(req, names[i])) {
            reply_error(req, 400, "query parameter '%s' must not hold a NUL byte", names[i]);
            return false;
        }
    return true;
}

bool files_admit(struct sandbox *b, struct http_req *req, enum files_access access,
                 struct files_target *ret)
{
    if (!query_clean(req))
        return false;
    const char *why = refusal(b, req, access), *user = http_query_get(req, "username");

    if (why) {
        reply_error(req, 401, "%s", why);
        return false;
    }
    if (!user || user[0] == '\0')
        user = defaults_user(b->spec.defaults);
    if (!user_name_valid(user)) {
        reply_no_user(req, user);
        return false;
    }
    snprintf(ret->user, sizeof(ret->user), "%s", user);
    ret->path = http_query_get(req, "path");
    return true;
}

bool files_resolve(struct http_req *req, const char *user, const char *given,
                   char ret[OPS_PATH_MAX])
{
    struct sg_error e = {0};

    if (envd_path(user, given, ret, &e) == 0)
        return true;
    reply_error(req, 400, "error resolving path: %s", e.message);
    return false;
}

void files_fail(struct http_req *req, const struct sandbox *b, const struct files_target *t,
                const char *path, int status, const char *message)
{
    if (status == CALL_GONE)
        reply_gone(req, b);
    else if (status == ENOENT || status == ENOTDIR)
        reply_error(req, 404, "path '%s' does not exist", path);
    else if (status == EISDIR)
        reply_error(req, 400, "path '%s' is a directory", path);
    else if (status == EUSERS)
        reply_no_user(req, t->user);
    else if (status == ENOSPC || status == EDQUOT)
        reply_error(req, 507, "not enough disk space available");
    else
        reply_error(req, status_of_call(status), "%s", message);
}

int files_begin_status(const struct sg_error *e)
{
    return e->code == -EPIPE ? CALL_GONE : -e->code;
}
