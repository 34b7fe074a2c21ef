#include "cli/client/sandbox.h"

#include "cli/client/api.h"
#include "lib/text/base64.h"
#include "cli/client/web.h"
#include "cli/client/jr.h"
#include "cli/client/payload.h"
#include "cli/client/url.h"

#define URL_MAX   (32u * 1024)
#define USER_ROOM 512

static const struct {
    const char *name;
    int code;
    enum sg_error_kind kind;
} codes[] = {
    {"invalid_argument", -EINVAL, SG_ERR_INVALID},
    {"failed_precondition", -EINVAL, SG_ERR_INVALID},
    {"out_of_range", -EINVAL, SG_ERR_INVALID},
    {"not_found", -ENOENT, SG_ERR_NOT_FOUND},
    {"already_exists", -EEXIST, SG_ERR_INVALID},
    {"permission_denied", -EACCES, SG_ERR_DENIED},
    {"unauthenticated", -EACCES, SG_ERR_DENIED},
    {"resource_exhausted", -EAGAIN, SG_ERR_LIMIT},
    {"unimplemented", -ENOSYS, SG_ERR_UNSUPPORTED},
    {"unavailable", -EHOSTUNREACH, SG_ERR_GONE},
    {"deadline_exceeded", -ETIMEDOUT, SG_ERR_LIMIT},
    {"canceled", -ECANCELED, SG_ERR_GONE},
};

/* ---- making ---------------------------------------------------------------------------------- */

static int create(struct client *c, const char *path, const struct payload_create *b, json_t **ret,
                  struct sg_error *e)
{
    AUTO(strbuf_done) struct strbuf body = {0};

    payload_create(&body, b);
    return api_call(c, "POST", &body, ret, e, "%s", path);
}

int sandbox_create(struct client *c, struct payload_create *b, json_t **ret, struct sg_error *e)
{
    int r = create(c, "/v2/sandboxes", b, ret, e);

    if (r == -ENOENT) { /* an older server */
        b->secure = true;
        r = create(c, "/sandboxes", b, ret, e);
    }
    if (r == 0 && !url_is_plain_name(jr_text(*ret, "sandboxID")))
        r = err_set(e, SG_ERR_INTERNAL, -EPROTO, "the server's answer has no id of a sandbox");
    return r;
}

/* ---- opening --------------------------------------------------------------------------------- */

/* Whether text from the server is safe in headers and host names of later requests. */
static bool is_clean(const char *s)
{
    for (; *s; s++)
        if (*s <= ' ' || *s > '~')
            return false;
    return true;
}

static int take_details(struct sandbox *v, const json_t *details, struct sg_error *e)
{
    const json_t *lifecycle = json_object_get(details, "lifecycle");
    const char *token = jr_text(details, "envdAccessToken"), *domain = jr_text(details, "domain");

    if (strcmp(jr_text(details, "state"), "paused") == 0 && !jr_flag(lifecycle, "autoResume"))
        return err_set(e, SG_ERR_INVALID, -EAGAIN,
                       "sandbox %s is paused: resume it with 'sandglass resume %s'", v->id, v->id);
    if (!is_clean(token) || !is_clean(domain) || strpbrk(domain, "/?#@\\"))
        return err_set(e, SG_ERR_INTERNAL, -EPROTO,
                       "the server's token or domain for sandbox %s has characters that it cannot "
                       "have",
                       v->id);
    v->token = *token ? xstrdup(token) : NULL;
    v->url = settings_port_url(&v->client->settings, v->port, v->id, domain);
    return 0;
}

static int ask(struct sandbox *v, struct sg_error *e)
{
    AUTO(jr_free_p) json_t *details = NULL;

    if (v->client->settings.debug) {
        v->url = settings_port_url(&v->client->settings, v->port, v->id, NULL);
        return 0;
    }
    int r = api_get(v->client, &details, e, "/sandboxes/%s", v->id);
    return r < 0 ? r : take_details(v, details, e);
}

/* The header has only the user's name and no password: envd has no passwords. */
static char *basic_authorization(const char *user)
{
    AUTO(strbuf_done) struct strbuf name = strbuf_upto(USER_ROOM);
    struct strbuf out;

    strbuf_addf(&name, "%s:", user);
    strbuf_init(&out, 2 * USER_ROOM);
    strbuf_addstr(&out, "Basic ");
    base64_encode(&out, name.buf, name.len);
    return strbuf_detach(&out, NULL);
}

int sandbox_open_port(struct sandbox *v, struct client *c, const char *id, const char *port,
                      struct sg_error *e)
{
    *v = (struct sandbox){.client = c, .id = id, .port = port};
    int r = ask(v, e);
    if (r < 0)
        sandbox_close(v);
    return r;
}

int sandbox_open(struct sandbox *v, struct client *c, const char *id, const char *user,
                 struct sg_error *e)
{
    int r = sandbox_open_port(v, c, id, SETTINGS_ENVD_PORT, e);

    if (r == 0 && user)
        v->authorization = basic_authorization(user);
    return r;
}

void sandbox_close(struct sandbox *v)
{
    free(v->url);
    free(v->token);
    free(v->authorization);
    v->url = v->token = v->authorization = NULL;
}

/* ---- requests -------------------------------------------------------------------------------- */

struct curl_slist *sandbox_headers(const struct sandbox *v, const char *content_type)
{
    struct curl_slist *list = NULL;

    web_add_header(&list, "E2b-Sandbox-Id", v->id);
    web_add_header(&list, "E2b-Sandbox-Port", v->port);
    if (v->token)
        web_add_header(&list, "X-Access-Token", v->token);
    if (v->authorization)
        web_add_header(&list, "Authorization", v->authorization);
    if (content_type)
        web_add_header(&list, "Content-Type", content_type);
    web_add_header(&list, "Expect", ""); /* send large bodies without asking the server first */
    return list;
}

void sandbox_api_url(const struct sandbox *v, struct strbuf *url, const char *what)
{
    strbuf_init(url, URL_MAX);
    strbuf_addf(url, "%s/%s", v->url, what);
}

int sandbox_error(const struct json_t *error, struct sg_error *e)
{
    const char *code = jr_text(error, "code"), *message = jr_text(error, "message");

    if (!*message)
        message = *code ? code : "the server gave no reason";
    for (size_t i = 0; i < ARRAY_SIZE(codes); i++)
        if (strcmp(code, codes[i].name) == 0)
            return err_set(e, codes[i].kind, codes[i].code, "%.400s", message);
    return err_set(e, SG_ERR_INTERNAL, -EREMOTEIO, "%.400s", message);
}

int sandbox_gone(const struct sandbox *v, const struct web_reply *reply, const char *otherwise,
                 struct sg_error *e)
{
    AUTO(jr_free_p) json_t *tree = NULL;
    const char *detail = "";

    if (jr_parse(reply->body.buf, reply->body.len, &tree, NULL) == 0)
        detail = jr_text(tree, "detail");
    return *detail ? err_set(e, SG_ERR_GONE, -ENXIO, "sandbox %s has ended: %.320s", v->id, detail)
                   : err_set(e, SG_ERR_GONE, -ENXIO, "sandbox %s %s", v->id, otherwise);
}

int sandbox_refusal(const struct sandbox *v, const struct web_reply *reply, struct sg_error *e)
{
    AUTO(jr_free_p) json_t *tree = NULL;

    if (reply->status == 502)
        return sandbox_gone(v, reply, "is not running", e);
    /* An error of a call has a code in words. An error about files has a number, as in the control
     * plane. */
    if (jr_parse(reply->body.buf, reply->body.len, &tree, NULL) == 0 &&
        json_is_string(json_object_get(tree, "code")))
        return sandbox_error(tree, e);
    return api_refusal(reply, e);
}

int sandbox_call(struct sandbox *v, const char *method, const struct strbuf *body,
                 struct json_t **ret, struct sg_error *e)
{
    AUTO(web_headers_done) struct curl_slist *headers = sandbox_headers(v, "application/json");
    AUTO(web_reply_done) struct web_reply reply = {0};
    AUTO(strbuf_done) struct strbuf url = {0};

    if (body->truncated)
        return err_set(e, SG_ERR_LIMIT, -E2BIG, "the request is too large");
    sandbox_api_url(v, &url, method);
    web_add_header(&headers, "Connect-Protocol-Version", "1");
    struct web_request q = {.method = "POST", .url = url.buf, .headers = headers, .body = body};
    int r = web_call(v->client->easy, &q, &reply, e);
    if (r < 0)
        return r;
    if (reply.status != 200)
        return sandbox_refusal(v, &reply, e);
    return ret ? jr_parse(reply.body.buf, reply.body.len, ret, e) : 0;
}
