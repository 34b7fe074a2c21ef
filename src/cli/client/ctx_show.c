/* sandglass ctx get, touch: describes one context in words. */
#include "lib/text/json.h"
#include "cli/client/api.h"
#include "cli/client/ctx.h"
#include "cli/client/jr.h"
#include "cli/client/payload.h"
#include "cli/client/show.h"
#include "cli/client/usage_text.h"

#define LINE_MAX_ 4096

static const struct show_field lines[] = {
    {"id", "id", SHOW_TEXT, NULL},
    {"conversation", "conversationId", SHOW_TEXT, NULL},
    {"path", "pathId", SHOW_TEXT, NULL},
    {"parent", "parentPathId", SHOW_TEXT, NULL},
    {"status", "sandboxStatus", SHOW_TEXT, NULL},
    {"sandbox", "sandboxId", SHOW_TEXT, NULL},
    {"template", "templateId", SHOW_TEXT, NULL},
    {"made", "createdAt", SHOW_TIME_AWAY, NULL},
    {"used", "lastUsedAt", SHOW_TIME_AWAY, NULL},
    {"ends", "expiresAt", SHOW_TIME_AWAY, "terminatedAt"},
    {"ended", "terminatedAt", SHOW_TIME_AWAY | SHOW_OPTIONAL, NULL},
    {"error", "errorMessage", SHOW_OPTIONAL, NULL},
};

static void print_context(const json_t *row)
{
    AUTO(strbuf_done) struct strbuf out = strbuf_upto(64u * 1024), usage = strbuf_upto(LINE_MAX_);

    show_object(&out, lines, ARRAY_SIZE(lines), row);
    usage_sentence(&usage, json_object_get(row, "resourceUsage"));
    show_line(&out, "usage", usage.buf);
    fputs(out.buf, stdout);
}

static int show(const struct ctx_options *o, const json_t *row, struct sg_error *e)
{
    if (o->base.json)
        return jr_print(row, e);
    print_context(row);
    return 0;
}

int ctx_get(struct client *c, void *options, struct sg_error *e)
{
    const struct ctx_options *o = options;
    const char *const *args = o->base.args;
    AUTO(jr_free_p) json_t *row = NULL;
    int r = o->base.n_args == 2 ? ctx_find(c, args[0], args[1], &row, e) : ctx_check_id(args[0], e);

    if (r == 0 && !row)
        r = api_get(c, &row, e, "/v1/contexts/%s", args[0]);
    return r < 0 ? r : show(o, row, e);
}

int ctx_touch(struct client *c, void *options, struct sg_error *e)
{
    const struct ctx_options *o = options;
    AUTO(jr_free_p) json_t *found = NULL, *row = NULL;
    AUTO(strbuf_done) struct strbuf body = strbuf_upto(128);
    struct json j = {.out = &body};
    const char *id;
    int r = ctx_id(c, o, o->base.n_args, &found, &id, e);

    jw_object_begin(&j);
    payload_number(&j, "ttlSeconds", o->ttl_s);
    jw_object_end(&j);
    if (r == 0)
        r = api_call(c, "POST", &body, &row, e, "/v1/contexts/%s/touch", id);
    return r < 0 ? r : show(o, row, e);
}
