#include "cli/client/api.h"
#include "cli/client/jr.h"
#include "cli/client/payload.h"
#include "cli/client/repl_kernel.h"
#include "cli/client/url.h"
#include "cli/client/web.h"

#define PATH_MAX_ 512
#define TEXT_MAX  320

int repl_refusal(const struct sandbox *sandbox, const struct web_reply *reply, struct sg_error *e)
{
    AUTO(jr_free_p) json_t *tree = NULL;
    bool json = jr_parse(reply->body.buf, reply->body.len, &tree, NULL) == 0;
    int r = api_refusal(reply, e);

    if (reply->status == 502)
        return sandbox_gone(sandbox, reply, "has ended", e);
    if (json && *jr_text(tree, "message"))
        return r;
    if (json && json_is_string(json_object_get(tree, "detail")))
        return err_set(e, e->kind, r, "%.320s", jr_text(tree, "detail"));
    if (json && json_is_string(tree))
        return err_set(e, e->kind, r, "%.320s", json_string_value(tree));
    if (!json && reply->body.len > 0)
        return err_set(e, e->kind, r, "%.*s", TEXT_MAX, reply->body.buf);
    return r;
}

static int call(struct sandbox *sandbox, const char *method, const char *path,
                const struct strbuf *body, json_t **ret, struct sg_error *e)
{
    AUTO(web_headers_done)
    struct curl_slist *headers = sandbox_headers(sandbox, body ? "application/json" : NULL);
    AUTO(web_reply_done) struct web_reply reply = {0};
    AUTO(strbuf_done) struct strbuf url = {0};

    sandbox_api_url(sandbox, &url, path);
    struct web_request q = {.method = method, .url = url.buf, .headers = headers, .body = body};
    int r = web_call(sandbox->client->easy, &q, &reply, e);
    if (r < 0)
        return r;
    if (reply.status < 200 || reply.status > 299)
        return repl_refusal(sandbox, &reply, e);
    return ret ? jr_parse(reply.body.buf, reply.body.len, ret, e) : 0;
}

int repl_context_call(struct sandbox *sandbox, const char *method, const char *id, const char *rest,
                      struct sg_error *e)
{
    AUTO(strbuf_done) struct strbuf path = strbuf_upto(PATH_MAX_), body = strbuf_upto(PATH_MAX_);

    strbuf_addf(&path, "contexts/%s%s", id, rest);
    return call(sandbox, method, path.buf, *rest ? &body : NULL, NULL, e);
}

int repl_context_create(struct sandbox *sandbox, const char *language, char **ret_id,
                        char **ret_language, struct sg_error *e)
{
    AUTO(strbuf_done) struct strbuf body = {0};
    AUTO(jr_free_p) json_t *answer = NULL;

    payload_texts(&body, "language", language, NULL);
    int r = call(sandbox, "POST", "contexts", &body, &answer, e);
    if (r < 0)
        return r;
    const char *id = jr_text(answer, "id"), *name = jr_text(answer, "language");
    if (!url_is_plain_name(id))
        return err_set(e, SG_ERR_INTERNAL, -EPROTO, "the server's answer has no id of a context");
    /* The language becomes part of a file's name (repl_history.h), so it must be plain. */
    *ret_language = xstrdup(url_is_plain_name(name) ? name : language);
    *ret_id = xstrdup(id);
    return 0;
}

int repl_context_list(struct sandbox *sandbox, json_t **ret, struct sg_error *e)
{
    AUTO(jr_free_p) json_t *answer = NULL;
    int r = call(sandbox, "GET", "contexts", NULL, &answer, e);

    if (r < 0)
        return r;
    if (!json_is_array(answer))
        return err_set(e, SG_ERR_INTERNAL, -EPROTO, "the server's answer is not a list");
    *ret = steal_ptr(&answer);
    return 0;
}
