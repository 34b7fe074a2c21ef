/* sandglass ctx branch, merge, rm. */
#include "lib/text/json.h"
#include "cli/client/api.h"
#include "cli/client/carry.h"
#include "cli/client/ctx.h"
#include "cli/client/jr.h"
#include "cli/client/payload.h"
#include "cli/client/show.h"

#define BODY_MAX (64u * 1024)

static void begin(struct json *j, struct strbuf *body)
{
    strbuf_init(body, BODY_MAX);
    jw_init(j, body);
    jw_object_begin(j);
}

/* ---- branch, merge --------------------------------------------------------------------------- */

int ctx_branch(struct client *c, void *options, struct sg_error *e)
{
    const struct ctx_options *o = options;
    AUTO(jr_free_p) json_t *answer = NULL, *refusal = NULL;
    AUTO(strbuf_done) struct strbuf body = {0};
    const char *inherit = ctx_inherit(o);
    struct json j;

    begin(&j, &body);
    payload_text(&j, "conversationId", o->base.args[0]);
    payload_text(&j, "fromPathId", o->base.args[1]);
    payload_text(&j, "toPathId", o->base.args[2]);
    payload_text(&j, "inherit", inherit);
    payload_text(&j, "atMessageId", o->at);
    payload_text(&j, "accept", o->accept_files ? "files" : NULL);
    if (client_given(&o->base, "wait"))
        jw_u64(jw_key(&j, "waitMs"), o->wait_ms);
    payload_number(&j, "ttlSeconds", o->ttl_s);
    jw_object_end(&j);
    struct api_request q = {.method = "POST",
                            .body = &body,
                            .more_ms = carry_more_ms(inherit, o->wait_ms),
                            .refusal = &refusal};
    if (api_ask(c, &q, &answer, e, "/v1/contexts/branch") < 0)
        return ctx_fail(e, refusal);
    if (o->base.json)
        return jr_print(answer, e);
    const json_t *row = json_object_get(answer, "context");
    if (json_is_object(row))
        show_say(stdout, "%s: context %s, sandbox %s", o->base.args[2], jr_text(row, "id"),
                 jr_text(row, "sandboxId"));
    else
        show_say(stdout, "%s: its sandbox is made when it is first used", o->base.args[2]);
    carry_print_kernels(json_object_get(answer, "kernels"));
    return 0;
}

int ctx_merge(struct client *c, void *options, struct sg_error *e)
{
    const struct ctx_options *o = options;
    AUTO(jr_free_p) json_t *answer = NULL;
    AUTO(strbuf_done) struct strbuf body = {0};
    struct json j;

    begin(&j, &body);
    payload_text(&j, "conversationId", o->base.args[0]);
    payload_text(&j, "sourcePathId", o->base.args[1]);
    payload_text(&j, "targetPathId", o->base.args[2]);
    jw_object_end(&j);
    int r = api_call(c, "POST", &body, &answer, e, "/v1/contexts/merge");
    if (r < 0 || o->base.json)
        return r < 0 ? r : jr_print(answer, e);
    const json_t *row = json_object_get(answer, "terminated");
    bool ended = json_is_object(row);
    show_say(stdout, "%s: merged into %s%s%s%s", o->base.args[1], o->base.args[2],
             ended ? ", context " : "", jr_text(row, "id"), ended ? " has ended" : "");
    return 0;
}

/* ---- rm -------------------------------------------------------------------------------------- */

static int rm_many(struct client *c, const struct ctx_options *o, struct sg_error *e)
{
    AUTO(jr_free_p) json_t *answer = NULL;
    AUTO(strbuf_done) struct strbuf body = {0};
    struct json j;

    if (o->conversation && !o->yes &&
        !show_agreed("End all contexts of conversation '%.64s'?", o->conversation))
        return CLIENT_EXIT_REFUSED;
    begin(&j, &body);
    payload_text(&j, "conversationId", o->conversation);
    jw_object_end(&j);
    int r = api_call(c, "POST", &body, &answer, e, "/v1/contexts/cleanup");
    if (r < 0 || o->base.json)
        return r < 0 ? r : jr_print(answer, e);
    uint64_t n = jr_count(answer, "terminated");
    if (!o->base.quiet)
        printf("%llu context%s ended\n", (unsigned long long)n, n == 1 ? "" : "s");
    return 0;
}

int ctx_rm(struct client *c, void *options, struct sg_error *e)
{
    const struct ctx_options *o = options;

    if (o->base.n_args == 0)
        return rm_many(c, o, e);
    return client_delete_each(c, &o->base, "/v1/contexts/", "context", ctx_check_id, e);
}
