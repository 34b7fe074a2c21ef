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

static int show(const struct ctx_options *o, const json_t *row)
{
    if (o->base.json)
        return show_json(row);
    print_context(row);
    return 0;
}

int ctx_find(struct client *c, const char *conversation, const char *path, json_t **ret,
             struct sg_error *e)
{
    AUTO(jr_free_p) json_t *list = NULL;
    int r = ctx_list(c, conversation, path, NULL, &list, e);

    if (r < 0)
        return r;
    if (json_array_size(list) == 0)
        return err_set(e, SG_ERR_NOT_FOUND, -ENOENT,
                       "path '%.64s' of conversation '%.64s' has no context", path, conversation);
    *ret = json_incref(json_array_get(list, 0));
    return 0;
}

int ctx_get(struct client *c, void *options)
{
    const struct ctx_options *o = options;
    AUTO(jr_free_p) json_t *row = NULL;
    AUTO(strbuf_done) struct strbuf path = {0};
    struct sg_error e;
    int r = o->base.n_args == 2 ? ctx_find(c, o->base.args[0], o->base.args[1], &row, &e)
                                : ctx_path(&path, o->base.args[0], "", &e);

    if (r == 0 && !row)
        r = api_call(c, "GET", path.buf, NULL, &row, &e);
    return r < 0 ? client_fail(&e) : show(o, row);
}

int ctx_touch(struct client *c, void *options)
{
    const struct ctx_options *o = options;
    AUTO(jr_free_p) json_t *found = NULL, *row = NULL;
    AUTO(strbuf_done) struct strbuf path = {0}, body = strbuf_upto(128);
    struct sg_error e;
    struct json j = {.out = &body};
    int r = o->base.n_args == 2 ? ctx_find(c, o->base.args[0], o->base.args[1], &found, &e) : 0;

    if (r == 0)
        r = ctx_path(&path, found ? jr_text(found, "id") : o->base.args[0], "/touch", &e);
    if (r < 0)
        return client_fail(&e);
    jw_object_begin(&j);
    if (o->ttl_s)
        jw_u64(jw_key(&j, "ttlSeconds"), o->ttl_s);
    jw_object_end(&j);
    r = api_call(c, "POST", path.buf, &body, &row, &e);
    return r < 0 ? client_fail(&e) : show(o, row);
}
