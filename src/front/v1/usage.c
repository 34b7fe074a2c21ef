/* The usage of a tenant, by day or by conversation, and its cost; the contexts and sandboxes that
 * the tenant has now; and its limits. */
#include "lib/base/clock.h"
#include "lib/settings/prices.h"
#include "front/v1/check.h"
#include "front/v1/days.h"
#include "front/v1/handlers.h"
#include "front/v1/reply.h"
#include "front/v1/shape.h"

#define ANSWER_MAX (1024u * 1024) /* CTX_DAYS_MAX days, or CTX_LIST_MAX conversations */

enum by { BY_DAY, BY_CONVERSATION, BY_TENANT, BY_MAX_ };
static const char *const by_names[] = {"day", "conversation", "tenant"};
_Static_assert(ARRAY_SIZE(by_names) == BY_MAX_, "a name for each");

struct usage_ask {
    struct e2b_req *q;
    struct days days;
    enum by by;
    char conversation[CTX_NAME_MAX + 1], after[CTX_NAME_MAX + 1];
    bool of_one, paged;           /* `conversation` and `after` were given; "" is a name too */
    uint64_t contexts, sandboxes; /* existing now */
    struct prices prices;
    struct reply reply;
};

/* ---- the cost -------------------------------------------------------------------------------- */

static void key_amount(struct json *j, const char *key, uint64_t amount)
{
    char text[PRICE_TEXT_MAX];

    price_format(amount, text);
    shape_text_key(j, key, text);
}

static void write_cost(struct json *j, const struct prices *p, const struct ctx_usage *u)
{
    const uint64_t quantities[] = {
        [PRICE_CPU] = u->cpu_us,
        [PRICE_MEMORY] = u->memory_mib_ms,
        [PRICE_EGRESS] = u->egress_up + u->egress_down,
        [PRICE_EXECUTION] = u->executions,
        [PRICE_SANDBOX] = u->sandboxes,
    };
    uint64_t parts[PRICE_MAX_], amount = 0;

    if (!p->set)
        return;
    for (enum price i = 0; i < PRICE_MAX_; i++) {
        parts[i] = price_cost(p, i, quantities[i]);
        amount = price_sum(amount, parts[i]);
    }
    jw_object_begin(jw_key(j, "cost"));
    key_amount(j, "amount", amount);
    shape_text_key(j, "currency", p->currency);
    jw_object_begin(jw_key(j, "parts"));
    for (enum price i = 0; i < PRICE_MAX_; i++)
        key_amount(j, price_name(i), parts[i]);
    jw_object_end(j);
    jw_object_end(j);
}

static void write_prices(struct json *j, const struct prices *p)
{
    char per[PRICE_TEXT_MAX];

    jw_key(j, "prices");
    if (!p->set) {
        jw_null(j);
        return;
    }
    jw_object_begin(j);
    shape_text_key(j, "currency", p->currency);
    for (enum price i = 0; i < PRICE_MAX_; i++) {
        if (p->of[i].amount == 0)
            continue;
        price_per(p, i, per);
        jw_object_begin(jw_key(j, price_name(i)));
        key_amount(j, "price", p->of[i].amount);
        shape_text_key(j, "per", per);
        jw_object_end(j);
    }
    jw_object_end(j);
}

/* ---- rows ------------------------------------------------------------------------------------ */

static void write_used(struct usage_ask *u, const struct ctx_usage *used)
{
    shape_usage(&u->reply.json, used);
    write_cost(&u->reply.json, &u->prices, used);
}

static void write_rows(struct usage_ask *u, const struct ctx_reply *reply)
{
    struct json *j = &u->reply.json;

    jw_array_begin(jw_key(j, u->by == BY_DAY ? "days" : "conversations"));
    for (size_t i = 0; i < reply->n; i++) {
        const struct ctx_usage_row *row = &reply->used[i];

        jw_object_begin(j);
        if (u->by == BY_DAY)
            shape_text_key(j, "day", row->day);
        else
            shape_nullable_key(j, "conversationId", row->conversation);
        write_used(u, &row->usage);
        jw_object_end(j);
    }
    jw_array_end(j);
}

static void write_total(struct usage_ask *u, const struct ctx_reply *days)
{
    struct json *j = &u->reply.json;
    struct ctx_usage total = {0};

    for (size_t i = 0; i < days->n; i++)
        ctx_usage_sum(&total, &days->used[i].usage);
    jw_object_begin(jw_key(j, "total"));
    write_used(u, &total);
    jw_object_end(j);
}

static void write_limits(struct json *j, const struct e2b_req *q)
{
    struct context_limits limits;

    context_limits(q->front, &q->tenant, &limits);
    jw_object_begin(jw_key(j, "limits"));
    jw_u64(jw_key(j, "contexts"), limits.tenant);
    jw_u64(jw_key(j, "conversationContexts"), limits.conversation);
    jw_u64(jw_key(j, "executionSeconds"), limits.execution_ms / 1000);
    jw_u64(jw_key(j, "executionMaxSeconds"), limits.execution_max_ms / 1000);
    jw_u64(jw_key(j, "codeBytes"), limits.code_max);
    jw_object_end(j);
}

static void write_rest(struct usage_ask *u)
{
    struct json *j = &u->reply.json;

    jw_object_begin(jw_key(j, "active"));
    jw_u64(jw_key(j, "contexts"), u->contexts);
    jw_u64(jw_key(j, "sandboxes"), u->sandboxes);
    jw_object_end(j);
    write_limits(j, u->q);
    write_prices(j, &u->prices);
}

/* ---- queries to the store, one after the other ----------------------------------------------- */

static void usage_ask_free(struct usage_ask *u)
{
    strbuf_done(&u->reply.text);
    free(u);
}

static void ask_used(struct usage_ask *u, enum ctx_usage_by by, ctx_done done)
{
    struct ctx_store *store = contexts_store(u->q->front);
    struct ctx_usage_query query = {
        .tenant = u->q->tenant.id,
        .from = u->days.from,
        .to = u->days.to,
        .by = by,
        .conversation = u->of_one ? u->conversation : NULL,
        .after = by == USAGE_BY_CONVERSATION && u->paged ? u->after : NULL,
    };

    store->ops->usage_get(store, &query, done, u);
}

static void on_conversations(void *arg, const struct ctx_reply *reply)
{
    struct usage_ask *u = arg;

    if (reply_came_of_store(u->q, reply)) {
        write_rows(u, reply);
        shape_nullable_key(&u->reply.json, "nextCursor",
                           reply->more ? reply->used[reply->n - 1].conversation : "");
        write_rest(u);
        reply_send(u->q, 200, &u->reply);
    }
    usage_ask_free(u);
}

static void on_days(void *arg, const struct ctx_reply *reply)
{
    struct usage_ask *u = arg;

    if (reply->r == 0) {
        struct json *j = reply_begin(&u->reply, ANSWER_MAX);

        shape_text_key(j, "from", u->days.from);
        shape_text_key(j, "to", u->days.to);
        if (u->by == BY_DAY)
            write_rows(u, reply);
        write_total(u, reply);
        if (u->by == BY_CONVERSATION) {
            ask_used(u, USAGE_BY_CONVERSATION, on_conversations);
            return;
        }
        write_rest(u);
    }
    if (reply_came_of_store(u->q, reply))
        reply_send(u->q, 200, &u->reply);
    usage_ask_free(u);
}

static void count_from(struct usage_ask *u, const struct ctx_row *before);

/* Counts page by page: a tenant may have more contexts than one list holds. */
static void on_counted(void *arg, const struct ctx_reply *reply)
{
    struct usage_ask *u = arg;

    if (reply->r < 0) {
        on_days(u, reply);
        return;
    }
    u->contexts += reply->n;
    for (size_t i = 0; i < reply->n; i++)
        u->sandboxes += reply->rows[i].status == CTX_CREATING || reply->rows[i].sandbox_id[0];
    if (reply->more && reply->n > 0)
        count_from(u, &reply->rows[reply->n - 1]);
    else
        ask_used(u, USAGE_BY_DAY, on_days);
}

static void count_from(struct usage_ask *u, const struct ctx_row *before)
{
    struct ctx_store *store = contexts_store(u->q->front);
    struct ctx_list list = {.tenant = u->q->tenant.id,
                            .statuses = CTX_ACTIVE,
                            .before_ms = before ? before->created_ms : 0,
                            .before_id = before ? before->id : "",
                            .limit = CTX_LIST_MAX};

    store->ops->list(store, &list, on_counted, u);
}

static enum by parse_by(struct e2b_req *q)
{
    const char *text = check_query(q, "by");

    for (enum by by = 0; text && by < BY_MAX_; by++)
        if (strcmp(text, by_names[by]) == 0)
            return by;
    if (text)
        fields_invalid(&q->in, "Invalid by \"%.20s\": use day, conversation or tenant", text);
    return 0;
}

static void parse_query(struct e2b_req *q, struct usage_ask *ret)
{
    fields_check(&q->in, days_parse(http_query_get(q->http, "from"), http_query_get(q->http, "to"),
                                    clock_wall_ms(), &ret->days, &q->wrong));
    ret->by = parse_by(q);
    const char *conversation = check_query_name(q, "conversationId", false);
    const char *after = check_query_name(q, "cursor", false);
    ret->of_one = conversation != NULL;
    ret->paged = after != NULL;
    snprintf(ret->conversation, sizeof(ret->conversation), "%s", conversation ? conversation : "");
    snprintf(ret->after, sizeof(ret->after), "%s", after ? after : "");
}

void v1_usage(struct http_req *req)
{
    struct e2b_req *q = e2b_of(req);
    struct usage_ask *u = xcalloc(1, sizeof(*u));

    u->q = q;
    parse_query(q, u);
    if (!e2b_read(q)) {
        free(u);
        return;
    }
    /* The prices were read once when the server started. If they cannot be read now, there are
     * none. */
    if (prices_parse(q->front->settings.prices, &u->prices, NULL) < 0)
        u->prices.set = false;
    e2b_wait(q);
    count_from(u, NULL);
}
