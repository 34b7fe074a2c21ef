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

static int request(struct client *c, const struct api_request *ask, const char *path,
                   struct web_reply *ret, struct sg_error *e)
{
    const struct strbuf *body = ask->body;
    AUTO(web_headers_done) struct curl_slist *headers = NULL;
    AUTO(strbuf_done) struct strbuf url = strbuf_upto(API_PATH_MAX + 1024);

    strbuf_addf(&url, "%s%s", c->settings.api_url, path);
    if (url.truncated || (body && body->truncated))
        return err_set(e, SG_ERR_LIMIT, -E2BIG, "the request is too large");
    if (c->settings.api_key)
        web_add_header(&headers, "X-API-KEY", c->settings.api_key);
    web_add_header(&headers, "Accept", "application/json");
    if (body)
        web_add_header(&headers, "Content-Type", "application/json");
    struct web_request q = {.method = ask->method,
                            .url = url.buf,
                            .headers = headers,
                            .body = body,
                            .more_ms = ask->more_ms};
    return call_and_follow(c, &q, ret, e);
}

int api_ask(struct client *c, const struct api_request *q, struct json_t **ret, struct sg_error *e,
            const char *path, ...)
{
    AUTO(web_reply_done) struct web_reply reply = {0};
    AUTO(free_p) char *text = NULL;
    va_list ap;

    va_start(ap, path);
    if (vasprintf(&text, path, ap) < 0)
        abort();
    va_end(ap);
    int r = request(c, q, text, &reply, e);
    if (r < 0)
        return r;
    if (q->next)
        snprintf(q->next, WEB_TOKEN_MAX, "%s", reply.next_token);
    if (reply.status >= 200 && reply.status <= 299)
        return ret ? jr_parse(reply.body.buf, reply.body.len, ret, e) : 0;
    if (q->refusal && jr_parse(reply.body.buf, reply.body.len, q->refusal, NULL) < 0)
        *q->refusal = NULL;
    return api_refusal(&reply, e);
}

int api_list(struct client *c, const char *path, struct json_t **ret, struct sg_error *e)
{
    AUTO(jr_free_p) json_t *all = json_array();
    char token[WEB_TOKEN_MAX] = "";
    struct api_request q = {.method = "GET", .next = token};

    for (unsigned n = 0; n < PAGES_MAX; n++) {
        AUTO(strbuf_done) struct strbuf url = strbuf_upto(API_PATH_MAX);
        AUTO(jr_free_p) json_t *page = NULL;

        strbuf_addstr(&url, path);
        if (*token)
            url_add_query(&url, "nextToken", token);
        int r = api_ask(c, &q, &page, e, "%s", url.buf);
        if (r < 0)
            return r;
        if (!json_is_array(page))
            return err_set(e, SG_ERR_INTERNAL, -EPROTO, "the server's answer is not a list");
        json_array_extend(all, page);
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
    int r = api_get(c, &all, e, "%s", path);

    for (unsigned n = 0; r == 0 && *jr_text(all, "nextCursor"); n++) {
        AUTO(strbuf_done) struct strbuf url = strbuf_upto(API_PATH_MAX);
        AUTO(jr_free_p) json_t *page = NULL;

        if (n == PAGES_MAX)
            return err_set(e, SG_ERR_LIMIT, -E2BIG, "the server's list has no end");
        strbuf_addstr(&url, path);
        url_add_query(&url, "cursor", jr_text(all, "nextCursor"));
        r = api_get(c, &page, e, "%s", url.buf);
        json_array_extend(json_object_get(all, list), json_object_get(page, list));
        json_t *next = json_object_get(page, "nextCursor");
        json_object_set_new(all, "nextCursor", next ? json_incref(next) : json_null());
    }
    if (r == 0)
        *ret = steal_ptr(&all);
    return r;
}
