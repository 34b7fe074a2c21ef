/* Paths of a conversation: branch, merge, cleanup, and the list of paths. */
#include "lib/json/values.h"
#include "front/e2b/checkpoints.h"
#include "front/v1/check.h"
#include "front/v1/handlers.h"
#include "front/v1/reply.h"
#include "front/v1/shape.h"

#define ANSWER_MAX (1024u * 1024) /* CTX_LIST_MAX paths */

/* ---- branch ---------------------------------------------------------------------------------- */

static const char *const inherits[] = {[INHERIT_NONE] = "none",
                                       [INHERIT_FILES] = "files",
                                       [INHERIT_STATE] = "state",
                                       [INHERIT_REPLAY] = "replay"};

/* Refuses fields that would be forgotten. If nothing is inherited, no sandbox is made now: the
 * first use of the path says how its sandbox is to be. */
static void refuse_wishes(struct fields *in, enum context_inherit inherit)
{
    static const char *const wishes[] = {"ttlSeconds", "metadata", "envs", "network", "waitMs"};
    static const char *const checkpoints[] = {"atMessageId", "checkpointId", "accept"};

    for (size_t i = 0; inherit == INHERIT_NONE && i < ARRAY_SIZE(wishes); i++)
        if (field_get(in, wishes[i]))
            field_wrong(in,
                        "'%s' goes with \"inherit\": \"files\", \"state\" or \"replay\" only: "
                        "without, the path gets its sandbox when it is first used",
                        wishes[i]);
    for (size_t i = 0; inherit < INHERIT_STATE && i < ARRAY_SIZE(checkpoints); i++)
        if (field_get(in, checkpoints[i]))
            field_wrong(in, "'%s' goes with \"inherit\": \"state\" or \"replay\" only",
                        checkpoints[i]);
}

static struct context_from parse_from(struct e2b_req *q)
{
    struct context_from from = {0};

    from.inherit = (enum context_inherit)field_word(&q->in, "inherit", inherits,
                                                    ARRAY_SIZE(inherits), INHERIT_NONE,
                                                    "\"none\", \"files\", \"state\" or \"replay\"");
    refuse_wishes(&q->in, from.inherit);
    from.message = check_name(q, "atMessageId", false);
    from.checkpoint = check_checkpoint(q);
    from.wait_ms = checkpoint_wait_field(&q->in);
    from.files_do = checkpoint_accept_field(&q->in);
    if (from.message && from.checkpoint)
        field_wrong(&q->in, "'atMessageId' and 'checkpointId' both name a checkpoint: give one");
    return from;
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
        inherit = jr_text_or(q->body, "inherit", NULL);
    shape_text_key(j, "conversationId", jr_text_or(q->body, "conversationId", NULL));
    shape_text_key(j, "pathId", jr_text_or(q->body, "toPathId", NULL));
    shape_text_key(j, "parentPathId", jr_text_or(q->body, "fromPathId", NULL));
    shape_text_key(j, "inherited", inherit);
    shape_obtained(j, a);
    report_put(j, a->report);
    reply_send(q, 201, &r);
}

void v1_branch(struct http_req *req)
{
    struct e2b_req *q = e2b_of(req);

    check_body(q, "conversationId", "fromPathId", "toPathId", "inherit", "ttlSeconds", "metadata",
               "envs", "network", "atMessageId", "checkpointId", "waitMs", "accept");
    struct check_two two = check_two_paths(q, "fromPathId", "toPathId");
    struct context_from from = parse_from(q);
    struct context_ask ask = check_ask(q, "toPathId");
    if (!e2b_read(q))
        return;
    from.path = two.one;
    e2b_wait(q);
    context_branch(q->front, &ask, &from, on_branched, q);
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
        shape_text_key(j, echoed[i], jr_text_or(q->body, echoed[i], NULL));
    shape_context(jw_key(j, "terminated"), a->row);
    reply_send(q, 200, &r);
}

void v1_merge(struct http_req *req)
{
    struct e2b_req *q = e2b_of(req);

    check_body(q, "conversationId", "sourcePathId", "targetPathId");
    struct check_two two = check_two_paths(q, "sourcePathId", "targetPathId");
    if (!e2b_read(q))
        return;
    e2b_wait(q);
    context_merge(q->front, q->tenant.id, two.conversation, two.one, two.other, on_merged, q);
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

void v1_cleanup(struct http_req *req)
{
    struct e2b_req *q = e2b_of(req);

    check_body(q, "conversationId");
    const char *conversation = check_name(q, "conversationId", false);
    if (!e2b_read(q))
        return;
    e2b_wait(q);
    context_cleanup(q->front, q->tenant.id, conversation, on_cleaned, q);
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
    const char *conversation = check_query_name(q, "conversationId", true);

    if (!e2b_read(q))
        return;
    e2b_wait(q);
    store->ops->paths(store, q->tenant.id, conversation, on_paths, q);
}
