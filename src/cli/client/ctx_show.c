/* sandglass ctx get, touch: describes one context in words. */
#include "lib/base/clock.h"
#include "lib/text/json.h"
#include "cli/client/api.h"
#include "cli/client/ctx.h"
#include "cli/client/jr.h"
#include "cli/client/show.h"
#include "cli/client/usage_text.h"
#include "lib/command/when.h"

#define LINE_MAX_ 4096

static void add_time(struct strbuf *out, const char *name, const char *value)
{
    char text[160], local[64], relative[64];
    int64_t then;

    if (when_parse_ms(value, &then) < 0) {
        show_line(out, name, "");
        return;
    }
    snprintf(text, sizeof(text), "%s (%s)", when_local(then, local, sizeof(local)),
             when_relative(then, clock_wall_ms(), relative, sizeof(relative)));
    show_line(out, name, text);
}

static void print_context(const json_t *row)
{
    static const struct {
        const char *name, *key;
        bool time;
    } lines[] = {
        {"id", "id", false},
        {"conversation", "conversationId", false},
        {"path", "pathId", false},
        {"parent", "parentPathId", false},
        {"status", "sandboxStatus", false},
        {"sandbox", "sandboxId", false},
        {"template", "templateId", false},
        {"made", "createdAt", true},
        {"used", "lastUsedAt", true},
        {"ends", "expiresAt", true},
        {"ended", "terminatedAt", true},
        {"error", "errorMessage", false},
    };
    AUTO(strbuf_done) struct strbuf out = strbuf_upto(64u * 1024), usage = strbuf_upto(LINE_MAX_);
    bool ended = *jr_text(row, "terminatedAt") != '\0';

    for (size_t i = 0; i < ARRAY_SIZE(lines); i++) {
        const char *value = jr_text(row, lines[i].key);

        if (strcmp(lines[i].key, ended ? "expiresAt" : "terminatedAt") == 0 ||
            (strcmp(lines[i].key, "errorMessage") == 0 && !*value))
            continue;
        if (lines[i].time)
            add_time(&out, lines[i].name, value);
        else
            show_line(&out, lines[i].name, value);
    }
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
    if (o->ttl_s)
        jw_u64(jw_key(&j, "ttlSeconds"), o->ttl_s);
    jw_object_end(&j);
    if (r == 0)
        r = api_call(c, "POST", &body, &row, e, "/v1/contexts/%s/touch", id);
    return r < 0 ? r : show(o, row, e);
}
