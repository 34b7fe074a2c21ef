#include "cli/client/api.h"

#include "cli/client/web.h"
#include "cli/client/jr.h"
#include "cli/client/url.h"

#define PAGES_MAX     10000
#define REDIRECTS_MAX 4

static const struct {
    long status;
    int code;
    enum sg_error_kind kind;
    const char *hint;
} refusals[] = {
    {400, -EINVAL, SG_ERR_INVALID, ""},
    {401, -EACCES, SG_ERR_DENIED, " (is E2B_API_KEY a key of this server?)"},
    {403, -EACCES, SG_ERR_DENIED, ""},
    {404, -ENOENT, SG_ERR_NOT_FOUND, ""},
    {405, -ENOENT, SG_ERR_NOT_FOUND, ""},
    {408, -ETIMEDOUT, SG_ERR_LIMIT, ""},
    {409, -EEXIST, SG_ERR_INVALID, ""},
    {410, -ESTALE, SG_ERR_NOT_FOUND, ""},
    {429, -EAGAIN, SG_ERR_LIMIT, ""},
    {501, -ENOSYS, SG_ERR_UNSUPPORTED, ""},
    {502, -ENXIO, SG_ERR_GONE, ""},
    {503, -EAGAIN, SG_ERR_LIMIT, " (try again later)"},
    {504, -ETIMEDOUT, SG_ERR_LIMIT, ""},
    {507, -ENOSPC, SG_ERR_LIMIT, ""},
};

int api_refusal(const struct web_reply *reply, struct sg_error *e)
{
    AUTO(jr_free_p) json_t *tree = NULL;
    int code = -EREMOTEIO;
    enum sg_error_kind kind = SG_ERR_INTERNAL;
    const char *hint = "", *message = "";

    for (size_t i = 0; i < ARRAY_SIZE(refusals); i++) {
        if (refusals[i].status != reply->status)
            continue;
        code = refusals[i].code;
        kind = refusals[i].kind;
        hint = refusals[i].hint;
    }
    if (jr_parse(reply->body.buf, reply->body.len, &tree, NULL) == 0)
        message = jr_text(tree, "message");
    if (*message)
        return err_set(e, kind, code, "%.320s%s", message, hint);
    return err_set(e, kind, code, "the server answered with status %ld%s", reply->status, hint);
}

/* The address of another server of the same kind that has what we asked for, from a redirect, or
 * NULL. The redirecting server has seen our key already, so sending the key on tells it to nobody
 * new. A step from https to http is not followed, because others could read the key on the way. */
static char *other_place(struct client *c, const char *from, const struct web_reply *reply)
{
    char *to = NULL;

    if (reply->status != 307)
        return NULL;
    curl_easy_getinfo(c->easy, CURLINFO_REDIRECT_URL, &to);
    if (!to || (strncmp(from, "https:", 6) == 0 && strncmp(to, "https:", 6) != 0))
        return NULL;
    return xstrdup(to);
}

static int call_and_follow(struct client *c, struct web_request *q, struct web_reply *ret,
                           struct sg_error *e)
{
    AUTO(free_p) char *url = NULL;
    int r = web_call(c->easy, q, ret, e);

    for (unsigned n = 0; r == 0 && n < REDIRECTS_MAX; n++) {
        char *next = other_place(c, q->url, ret);

        if (!next)
            break;
        free(url);
        q->url = url = next;
        web_reply_done(ret);
        r = web_call(c->easy, q, ret, e);
    }
    return r;
}

static int request(struct client *c, const struct api_request *ask, struct web_reply *ret,
                   struct sg_error *e)
{
    const struct strbuf *body = ask->body;
    AUTO(web_headers_done) struct curl_slist *headers = NULL;
    AUTO(strbuf_done) struct strbuf url = strbuf_upto(API_PATH_MAX + 1024);

    if (body && body->truncated)
        return err_set(e, SG_ERR_LIMIT, -E2BIG, "the request is too large");
    strbuf_addstr(&url, c->settings.api_url);
    strbuf_addstr(&url, ask->path);
    if (url.truncated)
        return err_set(e, SG_ERR_LIMIT, -E2BIG, "the request is too large");
    if (c->settings.api_key)
        web_add_header(&headers, "X-API-KEY", c->settings.api_key);
    web_add_header(&headers, "Accept", "application/json");
    if (body)
        web_add_header(&headers, "Content-Type", "application/json");
    struct web_request q = {
        .method = ask->method, .url = url.buf, .headers = headers, .more_ms = ask->more_ms};
    q.body = body ? body->buf : NULL;
    q.body_len = body ? body->len : 0;
    return call_and_follow(c, &q, ret, e);
}

static int accept_reply(const struct web_reply *reply, json_t **ret, struct sg_error *e)
{
    if (reply->status < 200 || reply->status > 299)
        return api_refusal(reply, e);
    return ret ? jr_parse(reply->body.buf, reply->body.len, ret, e) : 0;
}

int api_ask(struct client *c, const struct api_request *q, struct json_t **ret,
            struct json_t **ret_refusal, struct sg_error *e)
{
    AUTO(web_reply_done) struct web_reply reply = {0};
    int r = request(c, q, &reply, e);

    if (r < 0)
        return r;
    r = accept_reply(&reply, ret, e);
    if (r < 0 && ret_refusal && jr_parse(reply.body.buf, reply.body.len, ret_refusal, NULL) < 0)
        *ret_refusal = NULL;
    return r;
}

int api_call(struct client *c, const char *method, const char *path, const struct strbuf *body,
             struct json_t **ret, struct sg_error *e)
{
    struct api_request q = {.method = method, .path = path, .body = body};

    return api_ask(c, &q, ret, NULL, e);
}

int api_call_newest(struct client *c, const char *path, const struct strbuf *body_v2,
                    const struct strbuf *body_v1, struct json_t **ret, struct sg_error *e)
{
    AUTO(strbuf_done) struct strbuf newest = strbuf_upto(API_PATH_MAX);

    strbuf_addstr(&newest, "/v2");
    strbuf_addstr(&newest, path);
    int r = api_call(c, "POST", newest.buf, body_v2, ret, e);
    return r == -ENOENT ? api_call(c, "POST", path, body_v1, ret, e) : r;
}

/* Gets one page and appends its elements to `all`. */
static int list_page(struct client *c, const char *path, char *token, size_t cap, json_t *all,
                     struct sg_error *e)
{
    AUTO(web_reply_done) struct web_reply reply = {0};
    AUTO(jr_free_p) json_t *page = NULL;
    AUTO(strbuf_done) struct strbuf url = strbuf_upto(API_PATH_MAX);

    strbuf_addstr(&url, path);
    if (*token)
        url_add_query(&url, "nextToken", token);
    struct api_request q = {.method = "GET", .path = url.buf};
    int r = request(c, &q, &reply, e);
    if (r == 0)
        r = accept_reply(&reply, &page, e);
    if (r < 0)
        return r;
    if (!json_is_array(page))
        return err_set(e, SG_ERR_INTERNAL, -EPROTO, "the server's answer is not a list");
    snprintf(token, cap, "%s", reply.next_token);
    return json_array_extend(all, page);
}

int api_list(struct client *c, const char *path, struct json_t **ret, struct sg_error *e)
{
    AUTO(jr_free_p) json_t *all = json_array();
    char token[sizeof(((struct web_reply *)0)->next_token)] = "";

    for (unsigned page = 0; page < PAGES_MAX; page++) {
        int r = list_page(c, path, token, sizeof(token), all, e);

        if (r < 0)
            return r;
        if (!*token) {
            *ret = steal_ptr(&all);
            return 0;
        }
    }
    return err_set(e, SG_ERR_LIMIT, -E2BIG, "the server's list has no end");
}

int api_pages(struct client *c, const char *path, const char *list, struct json_t **ret,
              struct sg_error *e)
{
    AUTO(jr_free_p) json_t *all = NULL;
    int r = api_call(c, "GET", path, NULL, &all, e);

    for (unsigned n = 0; r == 0 && *jr_text(all, "nextCursor"); n++) {
        AUTO(strbuf_done) struct strbuf url = strbuf_upto(API_PATH_MAX);
        AUTO(jr_free_p) json_t *page = NULL;

        if (n == PAGES_MAX)
            return err_set(e, SG_ERR_LIMIT, -E2BIG, "the server's list has no end");
        strbuf_addstr(&url, path);
        url_add_query(&url, "cursor", jr_text(all, "nextCursor"));
        r = api_call(c, "GET", url.buf, NULL, &page, e);
        json_array_extend(json_object_get(all, list), json_object_get(page, list));
        json_t *next = json_object_get(page, "nextCursor");
        json_object_set_new(all, "nextCursor", next ? json_incref(next) : json_null());
    }
    if (r == 0)
        *ret = steal_ptr(&all);
    return r;
}

void api_path(struct strbuf *path, const char *id, const char *rest)
{
    strbuf_init(path, API_PATH_MAX);
    strbuf_addf(path, "/sandboxes/%s%s", id, rest);
}
