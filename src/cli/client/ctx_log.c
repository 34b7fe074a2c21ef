/* sandglass ctx log, rewind: lists the checkpoints of a context, and goes back to one of them.
 *
 * A checkpoint holds the variables and files as they were before a message. Each checkpoint comes
 * from the one before it. After a rewind, the next one comes from the checkpoint that was gone back
 * to, so checkpoints form a tree. */
#include "lib/text/json.h"
#include "lib/text/parse.h"
#include "cli/client/api.h"
#include "cli/client/carry.h"
#include "cli/client/ctx.h"
#include "cli/client/jr.h"
#include "cli/client/payload.h"
#include "cli/client/show.h"
#include "cli/client/tree.h"

#define BODY_MAX  (16u * 1024)
#define LABEL_MAX (66u * 1024)

/* ---- log ------------------------------------------------------------------------------------- */

static void add_row(void *arg, const json_t *checkpoint, const char *lines)
{
    const char *message = jr_text(checkpoint, "messageId");
    bool current = jr_flag(checkpoint, "current");
    AUTO(strbuf_done) struct strbuf label = strbuf_upto(LABEL_MAX);
    struct table *t = arg;
    char size[32];

    strbuf_addf(&label, "%s%s", lines, *message ? message : "-");
    table_add(t, TABLE_GREEN, current ? "*" : "");
    table_add(t, current ? TABLE_GREEN : TABLE_PLAIN, label.buf);
    table_add(t, TABLE_PLAIN, jr_text(checkpoint, "checkpointId"));
    show_time(t, checkpoint, "createdAt");
    table_add(t, TABLE_PLAIN, format_size(jr_count(checkpoint, "memoryBytes"), size, sizeof(size)));
    table_add(t, TABLE_PLAIN, jr_flag(checkpoint, "kernels") ? "yes" : "files only");
}

int ctx_log_rows(const json_t *checkpoints, unsigned flags, struct table *ret, struct sg_error *e)
{
    static const struct table_column columns[] = {
        {"", TABLE_TEXT},     {"MESSAGE", TABLE_NAME},  {"CHECKPOINT", TABLE_TEXT},
        {"MADE", TABLE_TEXT}, {"MEMORY", TABLE_NUMBER}, {"KERNELS", TABLE_TEXT},
    };

    table_init(ret, columns, ARRAY_SIZE(columns));
    return tree_walk(checkpoints, "checkpointId", "parentId", flags | TREE_STRAIGHT, add_row, ret,
                     e);
}

int ctx_log(struct client *c, void *options, struct sg_error *e)
{
    const struct ctx_options *o = options;
    AUTO(jr_free_p) json_t *row = NULL, *answer = NULL;
    AUTO(table_done) struct table t = {0};
    const char *id;
    int r = ctx_id(c, o, o->base.n_args, &row, &id, e);

    if (r == 0)
        r = api_get(c, &answer, e, "/v1/contexts/%s/checkpoints", id);
    const json_t *checkpoints = json_object_get(answer, "checkpoints");
    if (r == 0 && o->base.json)
        return jr_print(checkpoints, e);
    if (r == 0)
        r = ctx_log_rows(checkpoints, tree_flags_of_terminal(), &t, e);
    if (r == 0)
        table_print(&t, stdout);
    return r;
}

/* ---- rewind ---------------------------------------------------------------------------------- */

int ctx_fail(const struct sg_error *e, const json_t *refusal)
{
    const json_t *checkpoints = json_object_get(refusal, "checkpoints");
    AUTO(table_done) struct table t = {0};
    int status = carry_fail(e, refusal);

    if (json_array_size(checkpoints) > 0 && ctx_log_rows(checkpoints, 0, &t, NULL) == 0)
        table_print(&t, stderr);
    return status;
}

static void say_rewound(const struct ctx_options *o, const char *message, const json_t *answer)
{
    const json_t *context = json_object_get(answer, "context");
    const json_t *checkpoint = json_object_get(answer, "checkpoint");
    const char *path = context ? jr_text(context, "pathId") : o->base.args[o->base.n_args > 1];
    const char *id = jr_text(checkpoint, "checkpointId");

    if (!message)
        message = jr_text(checkpoint, "messageId");
    if (*message)
        show_say(stdout, "%s: as it was before message %s (checkpoint %s)", path, message, id);
    else
        show_say(stdout, "%s: as it was before checkpoint %s", path, id);
    carry_print_kernels(json_object_get(answer, "kernels"));
}

int ctx_rewind(struct client *c, void *options, struct sg_error *e)
{
    const struct ctx_options *o = options;
    AUTO(jr_free_p) json_t *row = NULL, *answer = NULL, *refusal = NULL;
    AUTO(strbuf_done) struct strbuf body = strbuf_upto(BODY_MAX);
    size_t n =
        o->checkpoint ? o->base.n_args : o->base.n_args - 1; /* arguments that name the context */
    const char *message = o->checkpoint ? NULL : o->base.args[n], *id;
    struct json j = {.out = &body};

    jw_object_begin(&j);
    payload_text(&j, "messageId", message);
    payload_text(&j, "checkpointId", o->checkpoint);
    payload_text(&j, "accept", o->accept_files ? "files" : NULL);
    jw_object_end(&j);
    struct api_request q = {.method = "POST", .body = &body, .refusal = &refusal};
    int r = ctx_id(c, o, n, &row, &id, e);
    if (r == 0)
        r = api_ask(c, &q, &answer, e, "/v1/contexts/%s/rewind", id);
    if (r == 0 && o->base.json)
        r = jr_print(answer, e);
    else if (r == 0)
        say_rewound(o, message, answer);
    return r < 0 ? ctx_fail(e, refusal) : 0;
}
