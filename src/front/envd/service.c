#include "front/envd/service.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "front/core/defaults.h"
#include "front/core/reply.h"
#include "lib/text/base64.h"

#define CREDENTIALS_MAX 1024

/* ---- users and paths ------------------------------------------------------------------------- */

/* The user's name in "Authorization: Basic". False: there is no such header, so nobody is named. */
static bool basic_user(const struct http_req *req, struct strbuf *ret)
{
    const char *header = http_header_get(req, "authorization");

    if (!header || strncasecmp(header, "basic ", 6) != 0)
        return false;
    header += 6 + strspn(header + 6, " ");
    if (base64_decode(ret, header, strlen(header)) < 0 || ret->truncated)
        return false;
    char *colon = memchr(ret->buf, ':', ret->len);
    if (!colon)
        return false;
    *colon = '\0';
    return true;
}

static void unknown_user(struct rpc_call *c, const char *user)
{
    rpc_fail(c, RPC_UNAUTHENTICATED, "invalid username: '%.64s'", user);
}

bool service_user(struct rpc_call *c, char ret[OPS_NAME_MAX + 1])
{
    AUTO(strbuf_done) struct strbuf credentials = strbuf_upto(CREDENTIALS_MAX);
    const char *name = defaults_user(sandbox_of(c)->spec.defaults);

    if (basic_user(c->req, &credentials))
        name = credentials.buf;
    if (!user_name_valid(name)) {
        unknown_user(c, name);
        return false;
    }
    snprintf(ret, OPS_NAME_MAX + 1, "%s", name);
    return true;
}

/* Appends a path, name by name, without looking at any file: clients have always been told relative
 * paths in this form. -ENAMETOOLONG. */
static int add_names(char ret[OPS_PATH_MAX], const char *names)
{
    size_t len = strlen(ret);

    while (*names) {
        size_t n = strcspn(names, "/");
        if (n == 2 && memcmp(names, "..", 2) == 0) {
            while (len > 0 && ret[--len] != '/')
                ;
        } else if (n > 0 && !(n == 1 && names[0] == '.')) {
            if (len + 1 + n >= OPS_PATH_MAX)
                return -ENAMETOOLONG;
            ret[len++] = '/';
            memcpy(ret + len, names, n);
            len += n;
        }
        ret[len] = '\0';
        names += n + (names[n] == '/');
    }
    if (len == 0)
        memcpy(ret, "/", 2);
    return 0;
}

static const char *home_of(const char *user)
{
    if (strcmp(user, "root") == 0)
        return "/root";
    return strcmp(user, DEFAULTS_USER) == 0 ? "/home/user" : NULL;
}

int envd_path(const char *user, const char *given, char ret[OPS_PATH_MAX], struct sg_error *e)
{
    const char *home = home_of(user);
    char path[OPS_PATH_MAX];
    int r = 0;

    if (given[0] == '~' && given[1] != '\0' && given[1] != '/')
        return err_invalid(
            e,
            "failed to expand path '%.200s' for user '%s': cannot expand user-specific "
            "home dir",
            given, user);
    if (given[0] == '~' && !home)
        given += given[1] == '/' ? 2 : 1;
    if (given[0] == '/' || !home) {
        r = strlen(given) < sizeof(path) ? 0 : -ENAMETOOLONG;
        if (r == 0)
            memcpy(path, given, strlen(given) + 1);
    } else {
        snprintf(path, sizeof(path), "%s", home);
        r = add_names(path, given + (given[0] == '~'));
    }
    if (r < 0)
        return err_set(e, SG_ERR_INVALID, r, "the path is longer than %d bytes", OPS_PATH_MAX - 1);
    memcpy(ret, path, strlen(path) + 1);
    return 0;
}

void envd_put_user(struct strbuf *request, const char *user)
{
    char text[sizeof(USER_AS_ROOT) + OPS_NAME_MAX];

    snprintf(text, sizeof(text), USER_AS_ROOT "%s", user);
    wire_put_str(request, text);
}

bool service_path(struct rpc_call *c, const char *user, const char *given, char ret[OPS_PATH_MAX])
{
    struct sg_error e = {0};

    if (envd_path(user, given, ret, &e) == 0)
        return true;
    rpc_fail(c, RPC_INVALID_ARGUMENT, "%s", e.message);
    return false;
}

/* ---- errors ---------------------------------------------------------------------------------- */

enum rpc_code service_code(int status)
{
    if (status == EEXIST)
        return RPC_ALREADY_EXISTS;
    if (status == ECANCELED)
        return RPC_CANCELED;
    if (status == ELOOP)
        return RPC_FAILED_PRECONDITION;
    switch (status_of_call(status)) {
    case 400:
    case 413:
        return RPC_INVALID_ARGUMENT;
    case 401:
        return RPC_UNAUTHENTICATED;
    case 403:
        return RPC_PERMISSION_DENIED;
    case 404:
        return RPC_NOT_FOUND;
    case 429:
    case 507:
        return RPC_RESOURCE_EXHAUSTED;
    case 501:
        return RPC_UNIMPLEMENTED;
    default: /* for example ENOTEMPTY: somebody adds files to a directory that is being removed */
        return RPC_FAILED_PRECONDITION;
    }
}

void service_gone(struct rpc_call *c)
{
    struct http_req *req = c->req;

    rpc_abandon(c);
    if (http_started(req))
        http_abort(req);
    else
        reply_gone(req, sandbox_of(c));
}

void service_nonsense(struct rpc_call *c)
{
    rpc_fail(c, service_code(EPROTO), "the sandbox sent a malformed answer");
}

void service_fail(struct rpc_call *c, const char *user, int status, const char *message)
{
    if (status == CALL_GONE)
        service_gone(c);
    else if (status == EUSERS)
        unknown_user(c, user);
    else
        rpc_fail(c, service_code(status), "%s", message);
}

void service_release(void *sandbox)
{
    sandbox_unref(sandbox);
}

/* ---- one operation of the agent -------------------------------------------------------------- */

static void task_close(struct rpc_call *c)
{
    struct task *t = c->owner;

    call_cancel(&t->call);
    if (t->release)
        t->release(t);
    free(t->path);
    free(t);
}

static void task_end(struct call *call, int status, const char *message, const void *result,
                     size_t len)
{
    struct task *t = call->owner;

    if (status == 0)
        t->done(t, result, len);
    else if (status != CALL_GONE && t->failed)
        t->failed(t, status, message);
    else
        service_fail(t->rpc, t->user, status, message);
}

void *task_new(struct rpc_call *c, size_t size)
{
    struct task *t = xcalloc(1, size);

    t->rpc = c;
    t->call.owner = t;
    t->call.on_end = task_end;
    c->owner = t;
    c->on_close = task_close;
    return t;
}

bool task_target(struct task *t, const char *given, struct strbuf *request)
{
    char path[OPS_PATH_MAX];

    if (!service_user(t->rpc, t->user) || !service_path(t->rpc, t->user, given, path))
        return false;
    t->path = xstrdup(path);
    envd_put_user(request, t->user);
    wire_put_str(request, path);
    return true;
}

void task_reply_empty(struct task *t, const void *result UNUSED, size_t len UNUSED)
{
    rpc_reply(t->rpc, NULL);
}

bool task_begin(struct task *t, enum chan_op op, const struct strbuf *request)
{
    struct sg_error e = {0};
    int r = call_begin(&t->call, sandbox_of(t->rpc), op, request, &e);

    if (r < 0)
        service_fail(t->rpc, t->user, r == -EPIPE ? CALL_GONE : -r, e.message);
    return r == 0;
}
