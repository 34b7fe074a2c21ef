/* Paths of a conversation: branch, merge, cleanup, and the list of paths. */
#include "front/e2b/checkpoints.h"
#include "front/e2b/field.h"
#include "front/v1/check.h"
#include "front/v1/handlers.h"
#include "front/v1/reply.h"
#include "front/v1/shape.h"

#define INHERIT_MAX 64
#define ANSWER_MAX  (1024u * 1024) /* CTX_LIST_MAX paths */

/* ---- branch ---------------------------------------------------------------------------------- */

static const char *const inherits[] = {[INHERIT_NONE] = "none",
                                       [INHERIT_FILES] = "files",
                                       [INHERIT_STATE] = "state",
                                       [INHERIT_REPLAY] = "replay"};

static int parse_inherit(const struct e2b_req *q, enum context_inherit *ret, struct sg_error *e)
{
    const char *inherit = inherits[INHERIT_NONE];
    int r = field_string(q->body, "inherit", INHERIT_MAX, &inherit, e);

    for (size_t i = 0; r == 0 && i < ARRAY_SIZE(inherits); i++)
        if (strcmp(inherit, inherits[i]) == 0) {
            *ret = (enum context_inherit)i;
            return 0;
        }
    return r < 0 ? r
                 : err_set(e, SG_ERR_INVALID, -EINVAL,
                           FIELD_ERROR
                           "'inherit' must be \"none\", \"files\", \"state\" or \"replay\"");
}

/* Refuses fields that would be forgotten. If nothing is inherited, no sandbox is made now: the
 * first use of the path says how its sandbox is to be. */
static int refuse_wishes(const struct e2b_req *q, enum context_inherit inherit, struct sg_error *e)
{
    static const char *const wishes[] = {"ttlSeconds", "metadata", "envs", "network", "waitMs"};
    static const char *const checkpoints[] = {"atMessageId", "checkpointId", "accept"};

    for (size_t i = 0; inherit == INHERIT_NONE && i < ARRAY_SIZE(wishes); i++)
        if (field_get(q->body, wishes[i]))
            return err_set(e, SG_ERR_INVALID, -EINVAL,
                           FIELD_ERROR "'%s' goes with \"inherit\": \"files\", \"state\" or "
                                       "\"replay\" only: without, the path gets its sandbox when "
                                       "it is first used",
                           wishes[i]);
    for (size_t i = 0; inherit < INHERIT_STATE && i < ARRAY_SIZE(checkpoints); i++)
        if (field_get(q->body, checkpoints[i]))
            return err_set(e, SG_ERR_INVALID, -EINVAL,
                           FIELD_ERROR "'%s' goes with \"inherit\": \"state\" or \"replay\" only",
                           checkpoints[i]);
    return 0;
}

static int parse_from(const struct e2b_req *q, struct context_from *ret, struct sg_error *e)
{
    int r = parse_inherit(q, &ret->inherit, e);

    if (r == 0)
        r = refuse_wishes(q, ret->inherit, e);
    if (r == 0)
        r = check_name(q->body, "atMessageId", false, &ret->message, e);
    if (r == 0)
        r = check_checkpoint(q, &ret->checkpoint, e);
    if (r == 0)
        r = check_wait(q, &ret->wait_ms, e);
    if (r == 0)
        r = checkpoint_accept_field(q->body, &ret->files_do, e);
    if (r == 0 && ret->message && ret->checkpoint)
        r = err_set(e, SG_ERR_INVALID, -EINVAL,
                    FIELD_ERROR
                    "'atMessageId' and 'checkpointId' both name a checkpoint: give one");
    return r;
}

static const char *body_text(const struct e2b_req *q, const char *field)
{
    return json_string_value(json_object_get(q->body, field));
}

static void on_branched(void *arg, const struct context_answer *a)
{
    struct e2b_req *q = arg;
    const char *inherit = inherits[INHERIT_NONE];
    struct reply r;

    if (!reply_came(q, a))
        return;
    struct json *j = reply_begin(&r, REPLY_LONG_MAX);
    if (a->row)
        inherit = body_text(q, "inherit");
    shape_text_key(j, "conversationId", body_text(q, "conversationId"));
    shape_text_key(j, "pathId", body_text(q, "toPathId"));
    shape_text_key(j, "parentPathId", body_text(q, "fromPathId"));
    shape_text_key(j, "inherited", inherit);
    shape_obtained(j, a);
    report_put(j, a->report);
    reply_send(q, 201, &r);
}

static int parse_branch(struct e2b_req *q, struct context_ask *ask, struct context_from *from,
                        struct sg_error *e)
{
    static const char *const known[] = {"conversationId", "fromPathId",   "toPathId", "inherit",
                                        "ttlSeconds",     "metadata",     "envs",     "network",
                                        "atMessageId",    "checkpointId", "waitMs",   "tenantId",
                                        "accept"};
    struct check_two two;
    int r = check_body(q, known, ARRAY_SIZE(known), e);

    if (r == 0)
        r = check_two_paths(q, "fromPathId", "toPathId", &two, e);
    if (r == 0)
        r = parse_from(q, from, e);
    if (r == 0)
        r = check_ask(q, "toPathId", ask, e);
    if (r == 0)
        from->path = two.one;
    return r;
}

static void branch(struct e2b_req *q)
{
    struct context_from from = {0};
    struct context_ask ask;
    struct sg_error e;

    if (parse_branch(q, &ask, &from, &e) < 0) {
        reply_sg_error(q->http, &e);
        return;
    }
    e2b_wait(q);
    context_branch(q->front, &ask, &from, on_branched, q);
}

void v1_branch(struct http_req *req)
{
    e2b_with_body(req, branch);
}

/* ---- merge, cleanup -------------------------------------------------------------------------- */

static void on_merged(void *arg, const struct context_answer *a)
{
    static const char *const echoed[] = {"conversationId", "sourcePathId", "targetPathId"};
    struct e2b_req *q = arg;
    struct reply r;

    if (!reply_came(q, a))
        return;
    struct json *j = reply_begin(&r, REPLY_MAX);
    for (size_t i = 0; i < ARRAY_SIZE(echoed); i++)
        shape_text_key(j, echoed[i], body_text(q, echoed[i]));
    jw_key(j, "terminated");
    shape_context(j, a->row);
    reply_send(q, 200, &r);
}

static void merge(struct e2b_req *q)
{
    static const char *const known[] = {"conversationId", "sourcePathId", "targetPathId",
                                        "tenantId"};
    struct check_two two;
    struct sg_error e;

    if (check_body(q, known, ARRAY_SIZE(known), &e) < 0 ||
        check_two_paths(q, "sourcePathId", "targetPathId", &two, &e) < 0) {
        reply_sg_error(q->http, &e);
        return;
    }
    e2b_wait(q);
    context_merge(q->front, q->tenant.id, two.conversation, two.one, two.other, on_merged, q);
}

void v1_merge(struct http_req *req)
{
    e2b_with_body(req, merge);
}

static void on_cleaned(void *arg, int res, const struct sg_error *e, size_t n)
{
    struct e2b_req *q = arg;
    struct reply r;

    if (!e2b_back(q))
        return;
    if (res < 0) {
        reply_failed(q, res, e);
        return;
    }
    struct json *j = reply_begin(&r, REPLY_MAX);
    jw_u64(jw_key(j, "terminated"), n);
    reply_send(q, 200, &r);
}

static void cleanup(struct e2b_req *q)
{
    static const char *const known[] = {"conversationId", "tenantId"};
    const char *conversation;
    struct sg_error e;

    if (check_body(q, known, ARRAY_SIZE(known), &e) < 0 ||
        check_name(q->body, "conversationId", false, &conversation, &e) < 0) {
        reply_sg_error(q->http, &e);
        return;
    }
    e2b_wait(q);
    context_cleanup(q->front, q->tenant.id, conversation, on_cleaned, q);
}

void v1_cleanup(struct http_req *req)
{
    e2b_with_body(req, cleanup);
}

/* ---- paths ----------------------------------------------------------------------------------- */

static void on_paths(void *arg, const struct ctx_reply *reply)
{
    struct e2b_req *q = arg;
    struct reply r;

    if (!reply_came_of_store(q, reply))
        return;
    struct json *j = reply_begin(&r, ANSWER_MAX);
    jw_array_begin(jw_key(j, "paths"));
    for (size_t i = 0; i < reply->n; i++)
        shape_path(j, &reply->paths[i]);
    jw_array_end(j);
    reply_send(q, 200, &r);
}

void v1_paths(struct http_req *req)
{
    struct e2b_req *q = e2b_of(req);
    struct ctx_store *store = contexts_store(q->front);
    const char *conversation;
    struct sg_error e;

    if (check_query_name(req, "conversationId", true, &conversation, &e) < 0) {
        reply_sg_error(req, &e);
        return;
    }
    e2b_wait(q);
    store->ops->paths(store, q->tenant.id, conversation, on_paths, q);
}
