/* sandglass ctx branch, merge, rm. */
#include "lib/text/json.h"
#include "cli/client/api.h"
#include "cli/client/carry.h"
#include "cli/client/ctx.h"
#include "cli/client/jr.h"
#include "cli/client/table.h"

#define BODY_MAX   (64u * 1024)
#define ANSWER_MAX 16

static void begin(struct json *j, struct strbuf *body)
{
    strbuf_init(body, BODY_MAX);
    jw_init(j, body);
    jw_object_begin(j);
}

static void add_text(struct json *j, const char *key, const char *value)
{
    if (!value)
        return;
    jw_string(jw_key(j, key), value);
}

/* Prints a line of ours that contains words from outside, which are cleaned. */
static void say(const struct strbuf *line)
{
    AUTO(strbuf_done) struct strbuf clean = strbuf_upto(BODY_MAX);

    table_clean(&clean, line->buf, line->len);
    puts(clean.buf);
}

/* ---- branch, merge --------------------------------------------------------------------------- */

int ctx_branch(struct client *c, void *options)
{
    const struct ctx_options *o = options;
    AUTO(jr_free_p) json_t *answer = NULL, *refusal = NULL;
    AUTO(strbuf_done) struct strbuf body = {0}, line = strbuf_upto(BODY_MAX);
    const char *inherit = ctx_inherit(o);
    struct sg_error e;
    struct json j;

    begin(&j, &body);
    add_text(&j, "conversationId", o->base.args[0]);
    add_text(&j, "fromPathId", o->base.args[1]);
    add_text(&j, "toPathId", o->base.args[2]);
    add_text(&j, "inherit", inherit);
    add_text(&j, "atMessageId", o->at);
    add_text(&j, "accept", o->accept_files ? "files" : NULL);
    if (client_given(&o->base, "wait"))
        jw_u64(jw_key(&j, "waitMs"), o->wait_ms);
    if (o->ttl_s)
        jw_u64(jw_key(&j, "ttlSeconds"), o->ttl_s);
    jw_object_end(&j);
    struct api_request q = {.method = "POST",
                            .path = "/v1/contexts/branch",
                            .body = &body,
                            .more_ms = carry_more_ms(inherit, o->wait_ms)};
    if (api_ask(c, &q, &answer, &refusal, &e) < 0)
        return ctx_fail(&e, refusal);
    if (o->base.json)
        return jr_print(answer, &e) < 0 ? client_fail(&e) : 0;
    const json_t *row = json_object_get(answer, "context");
    if (json_is_object(row))
        strbuf_addf(&line, "%s: context %s, sandbox %s", o->base.args[2], jr_text(row, "id"),
                    jr_text(row, "sandboxId"));
    else
        strbuf_addf(&line, "%s: its sandbox is made when it is first used", o->base.args[2]);
    say(&line);
    carry_print_kernels(json_object_get(answer, "kernels"));
    return 0;
}

int ctx_merge(struct client *c, void *options)
{
    const struct ctx_options *o = options;
    AUTO(jr_free_p) json_t *answer = NULL;
    AUTO(strbuf_done) struct strbuf body = {0}, line = strbuf_upto(BODY_MAX);
    struct sg_error e;
    struct json j;

    begin(&j, &body);
    add_text(&j, "conversationId", o->base.args[0]);
    add_text(&j, "sourcePathId", o->base.args[1]);
    add_text(&j, "targetPathId", o->base.args[2]);
    jw_object_end(&j);
    if (api_call(c, "POST", "/v1/contexts/merge", &body, &answer, &e) < 0)
        return client_fail(&e);
    if (o->base.json)
        return jr_print(answer, &e) < 0 ? client_fail(&e) : 0;
    const json_t *row = json_object_get(answer, "terminated");
    strbuf_addf(&line, "%s: merged into %s", o->base.args[1], o->base.args[2]);
    if (json_is_object(row))
        strbuf_addf(&line, ", context %s has ended", jr_text(row, "id"));
    say(&line);
    return 0;
}

/* ---- rm -------------------------------------------------------------------------------------- */

static int path_of(struct strbuf *path, const char *id, struct sg_error *e)
{
    return ctx_path(path, id, "", e);
}

/* Asks for consent at a terminal. Without a terminal nobody can answer, which counts as yes. */
static bool agreed(const char *conversation)
{
    char answer[ANSWER_MAX];

    if (!isatty(STDIN_FILENO))
        return true;
    fprintf(stderr, "End all contexts of conversation '%.64s'? [y/N] ", conversation);
    if (!fgets(answer, sizeof(answer), stdin))
        return false;
    return answer[0] == 'y' || answer[0] == 'Y';
}

static int rm_many(struct client *c, const struct ctx_options *o)
{
    AUTO(jr_free_p) json_t *answer = NULL;
    AUTO(strbuf_done) struct strbuf body = {0};
    struct sg_error e;
    struct json j;

    if (o->conversation && !o->yes && !agreed(o->conversation))
        return CLIENT_EXIT_REFUSED;
    begin(&j, &body);
    add_text(&j, "conversationId", o->conversation);
    jw_object_end(&j);
    if (api_call(c, "POST", "/v1/contexts/cleanup", &body, &answer, &e) < 0)
        return client_fail(&e);
    if (o->base.json)
        return jr_print(answer, &e) < 0 ? client_fail(&e) : 0;
    uint64_t n = jr_count(answer, "terminated");
    if (!o->base.quiet)
        printf("%llu context%s ended\n", (unsigned long long)n, n == 1 ? "" : "s");
    return 0;
}

int ctx_rm(struct client *c, void *options)
{
    const struct ctx_options *o = options;
    return o->base.n_args > 0 ? client_delete_each(c, &o->base, "context", path_of) : rm_many(c, o);
}
