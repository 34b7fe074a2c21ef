/* Contexts in PostgreSQL. Each call is one statement, one round trip and one transaction. Functions
 * of the schema (migrations/) do the work, so that the rules are where the rows are. */
#include "front/store/contexts_postgres.h"

#include <stdio.h>
#include <string.h>

#include "lib/text/json.h"
#include "front/store/contexts_common.h"

#define USAGE_MAX   ((uint64_t)1 << 53) /* of one addition: JSON is exact up to here */
#define ADDS_BYTES  (1536u * 1024)
#define NUMBER_SIZE 24

struct postgres {
    struct ctx_store base;
    struct dbworker *dbworker;
};

static struct postgres *postgres_of(struct ctx_store *s)
{
    return CONTAINER_OF(s, struct postgres, base);
}

static void on_rows(void *arg, const struct dbworker_rows *rows)
{
    struct pg_call *call = arg;
    struct ctx_reply reply = {.r = rows->r};

    if (rows->r < 0)
        reply.e = rows->e;
    else
        call->read(call, rows, &reply);
    call->done(call->arg, &reply);
    pg_reply_done(&reply);
    free(call);
}

static struct pg_call *call_new(ctx_done done, void *arg)
{
    return NEW(struct pg_call, .done = done, .arg = arg, .read = pg_read_rows);
}

static struct pg_call *call_about(const char *id, ctx_done done, void *arg)
{
    struct pg_call *call = call_new(done, arg);

    snprintf(call->id, sizeof(call->id), "%s", id);
    return call;
}

/* tenant NULL: the statement sees the rows of all tenants. */
#define SEND(s, call, statement, tenant, ...)                                                    \
    do {                                                                                         \
        const char *const params_[] = {__VA_ARGS__};                                             \
        dbworker_call(postgres_of(s)->dbworker, statement, tenant, params_, ARRAY_SIZE(params_), \
                      on_rows, call);                                                            \
    } while (0)

/* The text lives as long as the block that uses it. */
#define NUMBER(n) number((char[NUMBER_SIZE]){0}, n)

static const char *number(char *buf, uint64_t n)
{
    snprintf(buf, NUMBER_SIZE, "%llu", (unsigned long long)(n < INT64_MAX ? n : INT64_MAX));
    return buf;
}

/* ---- one context ----------------------------------------------------------------------------- */

static void pg_claim(struct ctx_store *s, const struct ctx_claim *q, ctx_done done, void *arg)
{
    struct pg_call *call = call_new(done, arg);

    call->limits = q->limits;
    SEND(s, call, PG_CALL("claim_context($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)"),
         q->tenant, q->tenant, q->conversation, q->path, q->id, q->node, q->template_id, q->in_use,
         NUMBER(q->ttl_ms), NUMBER(q->default_ttl_ms), NUMBER(q->lease_ms),
         NUMBER(q->limits.tenant), NUMBER(q->limits.conversation));
}

static void pg_replace(struct ctx_store *s, const char *tenant, const char *id,
                       const char *sandbox_id, const char *node, const struct ctx_limits *limits,
                       ctx_done done, void *arg)
{
    struct pg_call *call = call_about(id, done, arg);

    call->limits = *limits;
    call->read = pg_read_replaced;
    SEND(s, call,
         "SELECT f.outcome, " PG_ROW("f.detail") ", (SELECT c.kept FROM sandglass.context c"
                                                 " WHERE c.tenant_id = $1 AND c.id = $2)"
                                                 " FROM sandglass.replace_context($1, $2, $3, $4, "
                                                 "$5, $6) f",
         tenant, tenant, id, sandbox_id, node, NUMBER(limits->tenant),
         NUMBER(limits->conversation));
}

static void pg_settle(struct ctx_store *s, const char *tenant, const char *id, const char *node,
                      const char *sandbox_id, const char *error, const char *kept, ctx_done done,
                      void *arg)
{
    char clean[CTX_ERROR_MAX + 1];

    ctx_clean_text(clean, sizeof(clean), error ? error : "");
    SEND(s, call_about(id, done, arg), PG_CALL("settle_context($1, $2, $3, $4, $5, $6)"), tenant,
         tenant, id, node, sandbox_id, clean, kept);
}

static void pg_keep(struct ctx_store *s, const char *tenant, const char *id, const char *sandbox_id,
                    const char *kept, ctx_done done, void *arg)
{
    SEND(s, call_about(id, done, arg),
         "WITH k AS (UPDATE sandglass.context SET kept = $4 WHERE tenant_id = $1 AND id = $2"
         " AND sandbox_id = $3 AND sandbox_status = 'ready' RETURNING id)"
         " SELECT CASE WHEN k.id IS NULL THEN 'stale' ELSE 'ok' END, " PG_ROW(
             "d") " FROM (SELECT) AS one LEFT JOIN k ON true"
                  " LEFT JOIN sandglass.context_detail d ON d.tenant_id = $1 AND d.id = k.id",
         tenant, tenant, id, sandbox_id, kept);
}

static void pg_touch(struct ctx_store *s, const char *tenant, const char *id, uint64_t ttl_ms,
                     ctx_done done, void *arg)
{
    SEND(s, call_about(id, done, arg), PG_CALL("touch_context($1, $2, $3)"), tenant, tenant, id,
         NUMBER(ttl_ms));
}

static void pg_lost(struct ctx_store *s, const char *tenant, const char *id, const char *sandbox_id,
                    ctx_done done, void *arg)
{
    SEND(s, call_about(id, done, arg), "SELECT sandglass.lose_sandbox($1, $2, $3)", tenant, tenant,
         id, sandbox_id);
}

static void pg_terminate(struct ctx_store *s, const char *tenant, const char *id, ctx_done done,
                         void *arg)
{
    SEND(s, call_about(id, done, arg), PG_CALL("terminate_context($1, $2)"), tenant, tenant, id);
}

static void read_one(const struct pg_call *call, const struct dbworker_rows *rows,
                     struct ctx_reply *ret)
{
    if (rows->n == 0)
        ret->r = ctx_error_unknown(&ret->e, call->id);
    else
        pg_read_rows(call, rows, ret);
}

static void pg_get(struct ctx_store *s, const char *tenant, const char *id, ctx_done done,
                   void *arg)
{
    struct pg_call *call = call_about(id, done, arg);

    call->read = read_one;
    SEND(s, call,
         "SELECT 'ok', " PG_ROW("d") " FROM sandglass.context_detail d"
                                     " WHERE d.tenant_id = $1 AND d.id = $2",
         tenant, tenant, id);
}

/* ---- several contexts ------------------------------------------------------------------------ */

/* "{creating,ready}" */
static void status_array(unsigned statuses, char *ret, size_t cap)
{
    size_t n = (size_t)snprintf(ret, cap, "{");

    for (unsigned i = 0; i < CTX_STATUS_MAX_; i++)
        if (statuses & (1u << i))
            n += (size_t)snprintf(ret + n, cap - n, "%s%s", n > 1 ? "," : "",
                                  ctx_status_text((enum ctx_status)i));
    snprintf(ret + n, cap - n, "}");
}

static void pg_list(struct ctx_store *s, const struct ctx_list *q, ctx_done done, void *arg)
{
    struct pg_call *call = call_new(done, arg);
    char statuses[64];

    status_array(q->statuses, statuses, sizeof(statuses));
    call->limit = q->limit < CTX_LIST_MAX ? q->limit : CTX_LIST_MAX;
    /* Picks the rows of the page first, with an index alone, then joins the details of each. */
    SEND(s, call,
         "SELECT 'ok', " PG_ROW(
             "d") " FROM ("
                  "  SELECT c.id, c.created_at FROM sandglass.context c"
                  "   WHERE c.tenant_id = $1"
                  "     AND ($2::text IS NULL OR c.conversation_id = $2)"
                  "     AND ($3::text IS NULL OR c.path_id = $3)"
                  "     AND ($4::text IS NULL OR c.sandbox_id = $4)"
                  "     AND c.sandbox_status = ANY ($5::text[])"
                  "     AND ($6::bigint = 0 OR"
                  "          (c.created_at, c.id) < (to_timestamp($6::bigint / 1000.0), $7::text))"
                  "   ORDER BY c.created_at DESC, c.id DESC LIMIT $8::bigint) page"
                  "  JOIN sandglass.context_detail d ON d.tenant_id = $1 AND d.id = page.id"
                  " ORDER BY page.created_at DESC, page.id DESC",
         q->tenant, q->tenant, q->conversation, q->path, q->sandbox_id, statuses,
         NUMBER((uint64_t)q->before_ms), q->before_id, NUMBER(call->limit + 1));
}

static void pg_branch(struct ctx_store *s, const char *tenant, const char *conversation,
                      const char *from, const char *to, ctx_done done, void *arg)
{
    struct pg_call *call = call_new(done, arg);

    snprintf(call->path, sizeof(call->path), "%s", to);
    SEND(s, call, "SELECT sandglass.branch_path($1, $2, $3, $4)", tenant, tenant, conversation,
         from, to);
}

static void pg_merge(struct ctx_store *s, const char *tenant, const char *conversation,
                     const char *source, const char *target, ctx_done done, void *arg)
{
    SEND(s, call_new(done, arg), PG_CALL("merge_path($1, $2, $3, $4)"), tenant, tenant,
         conversation, source, target);
}

static void pg_paths(struct ctx_store *s, const char *tenant, const char *conversation,
                     ctx_done done, void *arg)
{
    struct pg_call *call = call_new(done, arg);

    call->read = pg_read_paths;
    SEND(s, call,
         "SELECT p.path_id, p.parent_path_id, p.merged_into, sandglass.ms(p.created_at), c.id,"
         "       c.sandbox_status"
         "  FROM sandglass.path p"
         "  LEFT JOIN sandglass.context c ON c.tenant_id = p.tenant_id"
         "       AND c.conversation_id = p.conversation_id AND c.path_id = p.path_id"
         "       AND c.sandbox_status IN ('creating', 'ready')"
         " WHERE p.tenant_id = $1 AND p.conversation_id = $2"
         " ORDER BY p.seq LIMIT $3::bigint",
         tenant, tenant, conversation, NUMBER(CTX_LIST_MAX));
}

/* ---- calls of the server itself -------------------------------------------------------------- */

static void pg_expire(struct ctx_store *s, const char *node, const char *tenant, uint64_t lease_ms,
                      size_t limit, ctx_done done, void *arg)
{
    SEND(s, call_new(done, arg), PG_CALL("expire_contexts($1, $2, $3, $4)"), tenant, node, tenant,
         NUMBER(lease_ms), NUMBER(limit < CTX_LIST_MAX ? limit : CTX_LIST_MAX));
}

/* "{a,b}" */
static char *id_array(const char *const *ids, size_t n)
{
    AUTO(strbuf_done) struct strbuf text = strbuf_upto(16 + n * (ID_LEN + 2));

    strbuf_addf(&text, "{");
    for (size_t i = 0; i < n; i++)
        strbuf_addf(&text, "%s%s", i > 0 ? "," : "", ids[i]);
    strbuf_addf(&text, "}");
    return strbuf_detach(&text, NULL);
}

static void pg_recover(struct ctx_store *s, const char *node, const char *const *alive, size_t n,
                       ctx_done done, void *arg)
{
    AUTO(free_p) char *ids = id_array(alive, n);

    SEND(s, call_new(done, arg), PG_CALL("recover_contexts($1, $2::text[], $3)"), NULL, node, ids,
         NUMBER(CTX_LIST_MAX));
}

static void pg_forget(struct ctx_store *s, const struct ctx_forget *q, ctx_done done, void *arg)
{
    struct pg_call *call = call_new(done, arg);

    call->read = pg_read_forgotten;
    SEND(s, call, "SELECT f.gone, f.next_path, f.more FROM sandglass.forget_old($1, $2, $3, $4) f",
         NULL, NUMBER(q->context_keep_ms), NUMBER(q->usage_keep_ms), NUMBER(q->cursor),
         NUMBER(q->limit < CTX_LIST_MAX ? q->limit : CTX_LIST_MAX));
}

static void pg_seen(struct ctx_store *s, const char *node, const char *url, ctx_done done,
                    void *arg)
{
    SEND(s, call_new(done, arg), "SELECT sandglass.node_seen($1, $2)", NULL, node, url);
}

static void pg_leave(struct ctx_store *s, const char *node, ctx_done done, void *arg)
{
    SEND(s, call_new(done, arg),
         "WITH empty AS (UPDATE sandglass.context SET sandbox_id = NULL"
         "      WHERE node_id = $1 AND sandbox_status = 'ready' AND sandbox_id IS NOT NULL),"
         "     gone AS (UPDATE sandglass.node SET seen_at = 'epoch' WHERE id = $1)"
         " SELECT 'ok'",
         NULL, node);
}

/* ---- usage ----------------------------------------------------------------------------------- */

static void write_add(struct json *j, const struct ctx_usage_add *add)
{
    jw_object_begin(j);
    jw_string(jw_key(j, "tenant"), add->tenant);
    jw_string(jw_key(j, "context"), add->context);
#define WRITE(name) \
    jw_u64(jw_key(j, #name), add->usage.name < USAGE_MAX ? add->usage.name : USAGE_MAX);
    CTX_USAGE(WRITE)
#undef WRITE
    jw_object_end(j);
}

static void pg_usage_add(struct ctx_store *s, const struct ctx_usage_add *adds, size_t n,
                         ctx_done done, void *arg)
{
    AUTO(strbuf_done) struct strbuf text = strbuf_upto(ADDS_BYTES);
    struct json j = {.out = &text};

    jw_array_begin(&j);
    for (size_t i = 0; i < n; i++)
        write_add(&j, &adds[i]);
    jw_array_end(&j);
    SEND(s, call_new(done, arg), "SELECT sandglass.add_usage($1::jsonb)", NULL, text.buf);
}

#define PG_USED(name)  ", u." #name
#define PG_TOTAL(name) ", sandglass.bounded(sum(u." #name "))"

/* Compares days as texts, so that a day which no month has is a bound like any other. All these
 * queries take the same parameters. */
#define PG_DAYS    "to_char(u.day, 'YYYY-MM-DD')"
#define PG_OF_DAYS "u.tenant_id = $1 AND " PG_DAYS " BETWEEN $2 AND $3"

static const char usage_of_days[] = "SELECT " PG_DAYS ", ''" CTX_USAGE(
    PG_USED) " FROM sandglass.usage_day u WHERE " PG_OF_DAYS
             " AND $5::text IS NULL AND $6::text IS NULL ORDER BY u.day LIMIT $4::bigint";
static const char usage_of_talks_days[] = "SELECT " PG_DAYS ", u.conversation_id" CTX_USAGE(
    PG_USED) " FROM sandglass.usage_talk u WHERE " PG_OF_DAYS
             " AND u.conversation_id = $5 AND $6::text IS NULL ORDER BY u.day LIMIT $4::bigint";
static const char usage_of_talks[] = "SELECT '', u.conversation_id" CTX_USAGE(
    PG_TOTAL) " FROM sandglass.usage_talk u WHERE " PG_OF_DAYS
              " AND ($5::text IS NULL OR u.conversation_id = $5)"
              " AND ($6::text IS NULL OR u.conversation_id > $6)"
              " GROUP BY u.conversation_id ORDER BY u.conversation_id LIMIT $4::bigint";

static void pg_usage_get(struct ctx_store *s, const struct ctx_usage_query *q, ctx_done done,
                         void *arg)
{
    struct pg_call *call = call_new(done, arg);
    const char *statement = q->conversation ? usage_of_talks_days : usage_of_days;

    call->read = pg_read_usage;
    call->limit = q->by == USAGE_BY_DAY ? CTX_DAYS_MAX : CTX_LIST_MAX;
    if (q->by == USAGE_BY_CONVERSATION)
        statement = usage_of_talks;
    SEND(s, call, statement, q->tenant, q->tenant, q->from, q->to, NUMBER(call->limit + 1),
         q->conversation, q->after);
}

/* ---- the store ------------------------------------------------------------------------------- */

static void pg_close(struct ctx_store *s)
{
    dbworker_dismiss(postgres_of(s)->dbworker);
    free(postgres_of(s));
}

static const struct ctx_store_ops ops = {
    .close = pg_close,
    .claim = pg_claim,
    .replace = pg_replace,
    .settle = pg_settle,
    .keep = pg_keep,
    .touch = pg_touch,
    .lost = pg_lost,
    .terminate = pg_terminate,
    .get = pg_get,
    .list = pg_list,
    .branch = pg_branch,
    .merge = pg_merge,
    .paths = pg_paths,
    .expire = pg_expire,
    .recover = pg_recover,
    .forget = pg_forget,
    .seen = pg_seen,
    .leave = pg_leave,
    .usage_add = pg_usage_add,
    .usage_get = pg_usage_get,
};

struct ctx_store *ctx_store_postgres(uv_loop_t *loop, struct dbworker *c)
{
    struct postgres *p = NEW(struct postgres, .base = {.ops = &ops, .loop = loop}, .dbworker = c);

    return &p->base;
}
