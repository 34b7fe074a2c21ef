/* What a tenant used, day by day; what it has now; and its limits. */
#include "base/clock.h"
#include "v1/check.h"
#include "v1/days.h"
#include "v1/handlers.h"
#include "v1/reply.h"
#include "v1/shape.h"

#define ANSWER_MAX (256u * 1024) /* CTX_DAYS_MAX days */

struct usage_ask {
    struct e2b_req *q;
    struct days days;
    uint64_t contexts, sandboxes; /* that there are now */
};

static void key_count(struct json *j, const char *key, uint64_t n)
{
    jw_key(j, key);
    jw_u64(j, n);
}

static void write_days(struct json *j, const struct ctx_reply *reply)
{
    struct ctx_usage total = {0};

    jw_key(j, "days");
    jw_array_begin(j);
    for (size_t i = 0; i < reply->n; i++) {
        const struct ctx_usage *u = &reply->days[i].usage;

        jw_object_begin(j);
        shape_text_key(j, "day", reply->days[i].day);
        shape_usage(j, u);
        jw_object_end(j);
        total.cpu_us += u->cpu_us;
        total.memory_mib_ms += u->memory_mib_ms;
        total.bytes_in += u->bytes_in;
        total.bytes_out += u->bytes_out;
        total.executions += u->executions;
        total.sandboxes += u->sandboxes;
    }
    jw_array_end(j);
    jw_key(j, "total");
    jw_object_begin(j);
    shape_usage(j, &total);
    jw_object_end(j);
}

static void write_limits(struct json *j, const struct e2b_req *q)
{
    struct context_limits limits;

    context_limits(q->front, &q->tenant, &limits);
    jw_key(j, "limits");
    jw_object_begin(j);
    key_count(j, "contexts", limits.tenant);
    key_count(j, "conversationContexts", limits.conversation);
    key_count(j, "executionSeconds", limits.execution_ms / 1000);
    key_count(j, "executionMaxSeconds", limits.execution_max_ms / 1000);
    key_count(j, "codeBytes", limits.code_max);
    jw_object_end(j);
}

static void reply_usage(const struct usage_ask *u, const struct ctx_reply *reply)
{
    struct reply r;
    struct json *j = reply_begin(&r, ANSWER_MAX);

    shape_text_key(j, "from", u->days.from);
    shape_text_key(j, "to", u->days.to);
    write_days(j, reply);
    jw_key(j, "active");
    jw_object_begin(j);
    key_count(j, "contexts", u->contexts);
    key_count(j, "sandboxes", u->sandboxes);
    jw_object_end(j);
    write_limits(j, u->q);
    reply_send(u->q, 200, &r);
}

/* The last word: the days, or why there are none. */
static void on_days(void *arg, const struct ctx_reply *reply)
{
    AUTO(free_p) struct usage_ask *u = arg;

    if (reply_came_of_store(u->q, reply))
        reply_usage(u, reply);
}

static void count_from(struct usage_ask *u, const struct ctx_row *before);

/* Page by page: a tenant may have more than one list holds. */
static void on_counted(void *arg, const struct ctx_reply *reply)
{
    struct usage_ask *u = arg;
    struct ctx_store *store = contexts_store(u->q->front);

    if (reply->r < 0) {
        on_days(u, reply);
        return;
    }
    u->contexts += reply->n;
    for (size_t i = 0; i < reply->n; i++)
        u->sandboxes += reply->rows[i].status == CTX_CREATING || reply->rows[i].sandbox[0];
    if (reply->more && reply->n > 0)
        count_from(u, &reply->rows[reply->n - 1]);
    else
        store->ops->usage_get(store, u->q->tenant.id, u->days.from, u->days.to, on_days, u);
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

void v1_usage(struct http_req *req)
{
    struct e2b_req *q = e2b_of(req);
    struct usage_ask *u;
    struct days days;
    struct sg_error e;

    if (days_parse(http_query_get(req, "from"), http_query_get(req, "to"), clock_wall_ms(), &days,
                   &e) < 0) {
        reply_sg_error(req, &e);
        return;
    }
    u = xcalloc(1, sizeof(*u));
    *u = (struct usage_ask){.q = q, .days = days};
    e2b_wait(q);
    count_from(u, NULL);
}
