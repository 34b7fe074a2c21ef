#include "front/store/dbworker_conn.h"

#include <poll.h>
#include <string.h>

/* Behind a pooler a transaction may be in anybody's session: there the session's settings are set
 * again in each transaction. */
#define TENANT_TEXT "SELECT set_config('sandglass.tenant', $1, true)"
#define TENANT_TEXT_POOLED                              \
    "SELECT set_config('sandglass.tenant', $1, true),"  \
    " set_config('search_path', 'pg_catalog', true),"   \
    " set_config('statement_timeout', '2500ms', true)," \
    " set_config('row_security', 'on', true)"
#define TENANT_ALL "*"

struct request *request_read(struct wire_in *in)
{
    struct wire_reader r = {.at = in->buf, .end = in->buf + in->len};
    struct request *q = xcalloc(1, sizeof(*q));

    q->seq = in->head.seq;
    q->statement = wire_read_text(&r);
    q->tenant = wire_read_text(&r);
    uint32_t n = wire_read_u32(&r);
    for (uint32_t i = 0; i < n && i < DBWORKER_PARAMS_MAX; i++)
        q->params[i] = wire_read_text(&r);
    if (r.bad || r.at != r.end || !q->statement || n > DBWORKER_PARAMS_MAX) {
        free(q);
        return NULL;
    }
    q->n = (int)n;
    q->message = steal_ptr(&in->buf);
    wire_in_done(in);
    return q;
}

void request_free(struct request *q)
{
    if (!q)
        return;
    free(q->message);
    free(q);
}

bool conn_open(struct conn *c, PGconn *pg)
{
    *c = (struct conn){.pg = pg};
    if (PQsetnonblocking(pg, 1) == 0 && PQenterPipelineMode(pg) == 1)
        return true;
    conn_close(c);
    return false;
}

void conn_close(struct conn *c)
{
    conn_end(c);
    for (size_t i = 0; i < c->n_prepared; i++)
        free(c->prepared[i]);
    if (c->pg)
        PQfinish(c->pg);
    *c = (struct conn){0};
}

/* The index of the text among the prepared ones; if it is not there, their number. */
static size_t find_prepared(const struct conn *c, const char *text)
{
    size_t i = 0;

    while (i < c->n_prepared && strcmp(c->prepared[i], text) != 0)
        i++;
    return i;
}

static void name_of(size_t i, char ret[24])
{
    snprintf(ret, 24, "sandglass_%zu", i);
}

/* Sends a statement, and prepares it first if it is new. A new one gets the index *at, which is
 * then counted up. */
static bool send_statement(struct conn *c, const char *text, const char *const *params, int n,
                           bool prepare, size_t *at, enum conn_step preparing)
{
    size_t i = find_prepared(c, text);
    char name[24];

    if (prepare && i == c->n_prepared) {
        i = (*at)++;
        if (i < CONN_STATEMENTS_MAX) {
            name_of(i, name);
            if (!PQsendPrepare(c->pg, name, text, 0, NULL))
                return false;
            c->steps[c->n_steps++] = preparing;
        }
    }
    c->steps[c->n_steps++] = preparing + 1;
    if (!prepare || i >= CONN_STATEMENTS_MAX)
        return PQsendQueryParams(c->pg, text, n, NULL, params, NULL, NULL, 0);
    name_of(i, name);
    return PQsendQueryPrepared(c->pg, name, n, params, NULL, NULL, 0);
}

static int flush(struct conn *c)
{
    int r = PQflush(c->pg);

    c->flush = r > 0;
    return r < 0 ? -EPIPE : 0;
}

int conn_begin(struct conn *c, struct request *q, bool prepare, uint64_t deadline_ns)
{
    const char *tenant = q->tenant ? q->tenant : TENANT_ALL;
    const char *tenant_text = prepare ? TENANT_TEXT : TENANT_TEXT_POOLED;
    size_t next = c->n_prepared;

    c->q = q;
    c->deadline_ns = deadline_ns;
    c->n_steps = c->step = 0;
    if (!send_statement(c, tenant_text, &tenant, 1, prepare, &next, STEP_PREPARE_TENANT) ||
        !send_statement(c, q->statement, q->params, q->n, prepare, &next, STEP_PREPARE) ||
        !PQpipelineSync(c->pg))
        return -EPIPE;
    return flush(c);
}

short conn_events(const struct conn *c)
{
    return (short)(POLLIN | (c->flush ? POLLOUT : 0));
}

static void keep(PGresult **kept, PGresult *result)
{
    if (*kept)
        PQclear(result);
    else
        *kept = result;
}

/* Keeps the first failure of any step as the cause; without one, the statement's rows are the
 * answer. */
static void take_result(struct conn *c, PGresult *result)
{
    enum conn_step step = c->step < c->n_steps ? c->steps[c->step] : STEP_MAX_;
    ExecStatusType status = PQresultStatus(result);

    if (status != PGRES_TUPLES_OK && status != PGRES_COMMAND_OK) {
        keep(&c->failure, result);
        return;
    }
    if (step == STEP_PREPARE_TENANT)
        c->prepared[c->n_prepared++] = xstrdup(TENANT_TEXT);
    else if (step == STEP_PREPARE)
        c->prepared[c->n_prepared++] = xstrdup(c->q->statement);
    if (step == STEP_RUN)
        keep(&c->rows, result);
    else
        PQclear(result);
}

int conn_continue(struct conn *c)
{
    if (c->flush && flush(c) < 0)
        return -EPIPE;
    if (!PQconsumeInput(c->pg) || PQstatus(c->pg) == CONNECTION_BAD)
        return -EPIPE;
    while (c->q && !PQisBusy(c->pg)) {
        PGresult *result = PQgetResult(c->pg);

        if (result && PQresultStatus(result) == PGRES_PIPELINE_SYNC) {
            PQclear(result);
            return c->rows || c->failure ? 1 : -EPIPE;
        }
        if (result)
            take_result(c, result);
        else if (++c->step > STEP_MAX_ + 1)
            return -EPIPE;
    }
    return 0;
}

void conn_end(struct conn *c)
{
    PQclear(c->rows);
    PQclear(c->failure);
    c->rows = c->failure = NULL;
    c->q = NULL;
}
