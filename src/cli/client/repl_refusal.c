#include "cli/client/repl_refusal.h"

#include "cli/client/api.h"
#include "cli/client/jr.h"

#define TEXT_MAX 320

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
