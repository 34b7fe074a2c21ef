#include <string.h>

#include "front/store/contexts_common.h"
#include "front/store/contexts_postgres.h"

/* One row of an answer, read cell by cell. `bad` notes a cell that does not fit; the reader refuses
 * the row once, at the end. */
struct cells {
    const char *const *at, *const *end;
    bool bad;
};

static struct cells row_of(const struct dbworker_rows *rows, size_t i)
{
    const char *const *first = rows->cells + i * rows->columns;

    return (struct cells){.at = first, .end = first + rows->columns};
}

static const char *next(struct cells *c)
{
    if (c->at == c->end) {
        c->bad = true;
        return NULL;
    }
    return *c->at++;
}

/* The next cell as a text; "" for null. */
static void next_text(struct cells *c, char *ret, size_t cap)
{
    const char *text = next(c);
    size_t len = text ? strlen(text) : 0;

    if (len >= cap) {
        c->bad = true;
        return;
    }
    memcpy(ret, text ? text : "", len + 1);
}

/* The next cell as a number; 0 for null. */
static uint64_t next_number(struct cells *c)
{
    const char *text = next(c);
    char *end = NULL;

    if (!text)
        return 0;
    errno = 0;
    unsigned long long n = strtoull(text, &end, 10);
    if (errno != 0 || end == text || *end || *text == '-' || n > INT64_MAX)
        c->bad = true;
    return c->bad ? 0 : n;
}

static int64_t next_time(struct cells *c)
{
    return (int64_t)next_number(c);
}

/* Usage without egress. A context's row has the egress columns apart, since its view could only
 * grow at the end. */
static void next_used(struct cells *c, struct ctx_usage *ret)
{
    ret->cpu_us = next_number(c);
    ret->memory_mib_ms = next_number(c);
    ret->bytes_in = next_number(c);
    ret->bytes_out = next_number(c);
    ret->executions = next_number(c);
    ret->sandboxes = next_number(c);
}

static void next_egress(struct cells *c, struct ctx_usage *ret)
{
    ret->egress_up = next_number(c);
    ret->egress_down = next_number(c);
}

static enum ctx_status next_status(struct cells *c)
{
    const char *text = next(c);
    enum ctx_status status = CTX_CREATING;

    if (!text || !ctx_status_parse(text, &status))
        c->bad = true;
    return status;
}

#define NEXT_TEXT(c, field) next_text(c, field, sizeof(field))

/* Reads the columns of the view context_detail, then the time. */
static void read_row(struct cells *c, struct ctx_row *ret)
{
    NEXT_TEXT(c, ret->id);
    NEXT_TEXT(c, ret->tenant);
    NEXT_TEXT(c, ret->conversation);
    NEXT_TEXT(c, ret->path);
    NEXT_TEXT(c, ret->parent);
    NEXT_TEXT(c, ret->sandbox_id);
    NEXT_TEXT(c, ret->template_id);
    ret->status = next_status(c);
    ret->created_ms = next_time(c);
    ret->used_ms = next_time(c);
    ret->expires_ms = next_time(c);
    ret->terminated_ms = next_time(c);
    ret->ttl_ms = next_number(c);
    NEXT_TEXT(c, ret->error);
    next_used(c, &ret->usage);
    NEXT_TEXT(c, ret->node);
    NEXT_TEXT(c, ret->node_url);
    const char *alive = next(c);
    ret->node_alive = alive && strcmp(alive, "t") == 0;
    next_egress(c, &ret->usage);
    ret->now_ms = next_time(c);
}

static void refuse(struct ctx_reply *ret)
{
    ret->n = 0;
    ret->r = ctx_error_unavailable(&ret->e, "the database's rows are malformed");
}

/* Turns the outcome of a call, good or the name of an error, into a code. */
static int outcome(const struct pg_call *call, const char *text, struct ctx_reply *ret)
{
    static const struct {
        const char *text;
        enum ctx_claimed claimed;
    } good[] = {
        {"ok", CLAIM_FOUND}, {"found", CLAIM_FOUND}, {"new", CLAIM_NEW}, {"busy", CLAIM_BUSY}};

    for (size_t i = 0; i < ARRAY_SIZE(good); i++)
        if (strcmp(text, good[i].text) == 0) {
            ret->claimed = good[i].claimed;
            return 0;
        }
    if (strcmp(text, "unknown") == 0)
        return ctx_error_unknown(&ret->e, call->id);
    if (strcmp(text, "stale") == 0)
        return ctx_error_stale(&ret->e, call->id);
    if (strcmp(text, "active") == 0)
        return ctx_error_active(&ret->e, call->path);
    if (strcmp(text, "tenant_limit") == 0)
        return ctx_error_tenant_limit(&ret->e, call->limits.tenant);
    if (strcmp(text, "conversation_limit") == 0)
        return ctx_error_conversation_limit(&ret->e, call->limits.conversation);
    return ctx_error_unavailable(&ret->e, "the database's answer is not understood");
}

void pg_read_rows(const struct pg_call *call, const struct dbworker_rows *rows,
                  struct ctx_reply *ret)
{
    size_t n = rows->n;

    if (n > CTX_LIST_MAX + 1) {
        refuse(ret);
        return;
    }
    struct ctx_row *read = xcalloc(n + 1, sizeof(*read));
    ret->rows = read;
    for (size_t i = 0; i < n; i++) {
        struct cells c = row_of(rows, i);
        const char *text = next(&c);

        ret->r = outcome(call, text ? text : "", ret);
        if (ret->r < 0) {
            ret->n = 0;
            return;
        }
        /* A call that has no row to show answers with the outcome alone. */
        if (rows->columns == 1)
            continue;
        read_row(&c, &read[i]);
        if (c.bad) {
            refuse(ret);
            return;
        }
        ret->n = i + 1;
    }
    if (call->limit > 0 && ret->n > call->limit) {
        ret->n = call->limit;
        ret->more = true;
    }
}

void pg_read_replaced(const struct pg_call *call, const struct dbworker_rows *rows,
                      struct ctx_reply *ret)
{
    pg_read_rows(call, rows, ret);
    if (ret->r < 0 || ret->n != 1 || rows->columns < 2)
        return;
    const char *kept = rows->cells[rows->columns - 1];
    ret->kept = kept ? xstrdup(kept) : NULL;
}

void pg_read_forgotten(const struct pg_call *call UNUSED, const struct dbworker_rows *rows,
                       struct ctx_reply *ret)
{
    if (rows->n != 1) {
        refuse(ret);
        return;
    }
    struct cells c = row_of(rows, 0);
    uint64_t gone = next_number(&c), cursor = next_number(&c);
    const char *more = next(&c);
    if (c.bad) {
        refuse(ret);
        return;
    }
    ret->n = (size_t)gone;
    ret->cursor = cursor;
    ret->more = more && strcmp(more, "t") == 0;
}

void pg_read_paths(const struct pg_call *call UNUSED, const struct dbworker_rows *rows,
                   struct ctx_reply *ret)
{
    if (rows->n > CTX_LIST_MAX) {
        refuse(ret);
        return;
    }
    struct ctx_path *read = xcalloc(rows->n + 1, sizeof(*read));
    ret->paths = read;
    for (size_t i = 0; i < rows->n; i++) {
        struct cells c = row_of(rows, i);

        NEXT_TEXT(&c, read[i].path);
        NEXT_TEXT(&c, read[i].parent);
        NEXT_TEXT(&c, read[i].merged_into);
        read[i].created_ms = next_time(&c);
        NEXT_TEXT(&c, read[i].context);
        if (read[i].context[0])
            read[i].status = next_status(&c);
        if (c.bad) {
            refuse(ret);
            return;
        }
    }
    ret->n = rows->n;
}

void pg_read_usage(const struct pg_call *call, const struct dbworker_rows *rows,
                   struct ctx_reply *ret)
{
    if (rows->n > call->limit + 1) {
        refuse(ret);
        return;
    }
    struct ctx_usage_row *read = xcalloc(rows->n + 1, sizeof(*read));
    ret->used = read;
    for (size_t i = 0; i < rows->n; i++) {
        struct cells c = row_of(rows, i);

        NEXT_TEXT(&c, read[i].day);
        NEXT_TEXT(&c, read[i].conversation);
        next_used(&c, &read[i].usage);
        next_egress(&c, &read[i].usage);
        if (c.bad) {
            refuse(ret);
            return;
        }
    }
    ret->more = rows->n > call->limit;
    ret->n = ret->more ? call->limit : rows->n;
}

void pg_reply_done(struct ctx_reply *reply)
{
    free((void *)(uintptr_t)reply->rows);
    free((void *)(uintptr_t)reply->paths);
    free((void *)(uintptr_t)reply->used);
    free((void *)(uintptr_t)reply->kept);
}
