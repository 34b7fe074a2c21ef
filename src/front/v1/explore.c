/* Best of N: runs several codes side by side, each in a sandbox of its own that starts as a copy of
 * the path's sandbox (front/contexts/explore.c). Afterwards the path can adopt one of those
 * sandboxes.
 *
 *   asked --> candidates --> a run in each --> all over --> answered, and they are kept for a while
 *                 |              |
 *                 +--------------+-- the client has gone: everything ends
 *
 * The results of all runs are gathered in full before the answer, so all of them together have the
 * limit of one run's answer. */
#include "lib/base/clock.h"
#include "front/e2b/checkpoints.h"
#include "front/e2b/shape.h"
#include "front/e2b/spec.h"
#include "front/tools/call.h"
#include "front/tools/outlet.h"
#include "front/tools/routes.h"
#include "front/v1/check.h"
#include "front/v1/handlers.h"
#include "front/v1/reply.h"
#include "front/v1/shape.h"

#define CODES_BYTES_MAX (4u * 1024 * 1024)
#define BODY_MAX        (2 * CODES_BYTES_MAX + 1024u * 1024) /* with room for escapes */
#define KEEP_S          60
#define GRACE_MS        60000 /* time for the cells to begin, and for their ends to reach us */

static const char no_room[] =
    "the result was left out: all results together are larger than an answer may be";
static const char ended[] = "the candidate's sandbox has ended";

struct attempt {
    struct explore *of;
    struct tool_run *run; /* NULL: the run is over, or has not begun */
    struct strbuf text;   /* its result, a JSON object; empty: there is none, */
    const char *why;      /* ... because of this */
};

struct explore {
    struct http_req *req; /* NULL: the client has gone */
    struct e2b_req *q;
    struct store_tenant tenant;
    struct sanitise_level sanitise;
    json_t *arguments[EXPLORE_MAX]; /* arguments of run_code for each attempt */
    size_t n, open;
    uint64_t wait_ms, keep_ms, timeout_ms;
    bool waiting; /* the candidates are being made */
    struct exploration *x;
    struct attempt attempts[EXPLORE_MAX];
    size_t gathered;       /* bytes of all results */
    struct strbuf kernels; /* members of the answer; may be empty */
    struct outlet outlet;
};

/* ---- end ------------------------------------------------------------------------------------- */

static void explore_free(struct explore *g)
{
    for (size_t i = 0; i < g->n; i++) {
        if (g->attempts[i].run)
            tool_run_cancel(g->attempts[i].run);
        strbuf_done(&g->attempts[i].text);
        json_decref(g->arguments[i]);
    }
    if (g->x)
        exploration_keep(g->x, 0);
    strbuf_done(&g->kernels);
    outlet_done(&g->outlet);
    free(g);
}

static void on_gone(void *work)
{
    struct explore *g = work;

    g->req = NULL;
    if (!g->waiting)
        explore_free(g);
}

static void on_writable(struct http_req *req)
{
    struct explore *g = e2b_of(req)->work;

    outlet_pump(&g->outlet);
}

/* ---- the answer ------------------------------------------------------------------------------ */

static void put_attempt(struct json *j, const struct explore *g, size_t i)
{
    const struct attempt *a = &g->attempts[i];
    const struct sandbox *b = g->x->sandboxes[i];

    jw_object_begin(j);
    if (b && g->keep_ms > 0)
        shape_text_key(j, "candidateId", b->id);
    jw_u64(jw_key(j, "index"), i);
    if (a->text.len > 0) {
        /* Copies the members of an object that was written as a whole, without its braces. */
        strbuf_addch(j->out, ',');
        strbuf_add(j->out, a->text.buf + 1, a->text.len - 2);
    } else {
        jw_i64(jw_key(j, "code"), a->why == no_room ? 507 : 503);
        shape_text_key(j, "message", a->why);
    }
    jw_object_end(j);
}

static void answer(struct explore *g)
{
    AUTO(strbuf_done) struct strbuf out = strbuf_upto(TOOL_ANSWER_MAX + REPLY_LONG_MAX);
    struct json j = {.out = &out};

    jw_object_begin(&j);
    shape_text_key(&j, "explorationId", g->x->id);
    shape_nullable_time_key(&j, "keptUntil",
                            g->keep_ms ? clock_wall_ms() + (int64_t)g->keep_ms : 0);
    jw_array_begin(jw_key(&j, "results"));
    for (size_t i = 0; i < g->n; i++)
        put_attempt(&j, g, i);
    jw_array_end(&j);
    if (g->kernels.len > 0)
        jw_raw(jw_key(&j, "kernels"), g->kernels.buf, g->kernels.len);
    jw_object_end(&j);
    exploration_keep(steal_ptr(&g->x), g->keep_ms);
    http_start(g->req, 200, "application/json", (int64_t)out.len);
    outlet_write(&g->outlet, out.buf, out.len);
    outlet_finish(&g->outlet);
}

/* ---- the runs -------------------------------------------------------------------------------- */

static void on_done(void *arg, const struct tool_result *r)
{
    struct attempt *a = arg;
    struct explore *g = a->of;
    struct json j = {.out = &a->text};

    a->run = NULL;
    strbuf_init(&a->text, TOOL_ANSWER_MAX - g->gathered);
    tool_result_json(&j, TOOL_RUN_CODE, r, NULL);
    if (a->text.truncated) {
        strbuf_done(&a->text);
        a->why = no_room;
    }
    g->gathered += a->text.len;
    if (--g->open == 0)
        answer(g);
}

static void run_all(struct explore *g, const struct ctx_row *row)
{
    struct tool_place place = {.conversation = row->conversation, .path = row->path};

    g->open = g->n + 1; /* the loop counts as one, so it cannot end before all have begun */
    for (size_t i = 0; i < g->n; i++) {
        struct attempt *a = &g->attempts[i];
        struct tool_listener listener = {
            .arg = a, .sanitise = g->sanitise, .forced = true, .on_done = on_done};

        a->of = g;
        if (!g->x->sandboxes[i]) {
            a->why = ended;
            g->open--;
            continue;
        }
        a->run = tool_begin_in(g->x->sandboxes[i], &g->tenant, g->x->context, g->arguments[i],
                               &place, &listener);
    }
    if (--g->open == 0)
        answer(g);
}

static void keep_kernels(struct explore *g, const json_t *report)
{
    const json_t *kernels = json_object_get(report, "kernels");
    AUTO(free_p) char *text = kernels ? json_dumps(kernels, JSON_COMPACT) : NULL;

    strbuf_init(&g->kernels, REPLY_LONG_MAX / 2);
    if (text)
        strbuf_addstr(&g->kernels, text);
    if (g->kernels.truncated)
        strbuf_done(&g->kernels);
}

static void on_candidates(void *arg, const struct context_answer *a, struct exploration *x)
{
    struct explore *g = arg;

    g->waiting = false;
    g->x = x;
    if (!g->req) {
        explore_free(g);
        return;
    }
    if (!reply_usable_active(g->q, a))
        return;
    keep_kernels(g, a->report);
    run_all(g, a->row);
}

/* ---- the request ----------------------------------------------------------------------------- */

/* Reads the codes. Each is checked as run_code checks it. */
static void read_codes(struct explore *g, const struct context_limits *limits)
{
    static const struct tool_place anywhere = {.conversation = "c", .path = "p"};
    struct fields *in = &g->q->in;
    json_t *codes = field_array(in, "codes", EXPLORE_MAX), *code;
    struct tool_call call;
    size_t bytes = 0, i;

    if (json_array_size(codes) == 0)
        field_wrong(in, "'codes' must have 1 to %d entries", EXPLORE_MAX);
    json_array_foreach(codes, i, code)
    {
        g->arguments[g->n++] = json_pack("{s:O, s:O*, s:f}", "code", code, "language",
                                         json_object_get(g->q->body, "language"), "timeoutSeconds",
                                         (double)g->timeout_ms / 1000);
        bytes += json_string_length(code);
        if (code_call_read(limits, g->arguments[i], &anywhere, &call, in->e) == 0)
            tool_call_done(&call);
        else
            fields_check(in, err_wrap(in->e, in->e->code, "codes[%zu]", i));
        if (!fields_ok(in))
            return;
    }
    if (bytes > CODES_BYTES_MAX)
        fields_fail(in, SG_ERR_INVALID, -E2BIG,
                    "the codes have %zu bytes together: the limit is %u", bytes, CODES_BYTES_MAX);
}

static void read_request(struct explore *g)
{
    struct context_limits limits;
    struct e2b_req *q = g->q;

    context_limits(q->front, &q->tenant, &limits);
    fields_known(&q->in, "codes", "language", "timeoutMs", "waitMs", "keepSeconds");
    g->timeout_ms =
        field_count(&q->in, "timeoutMs", 1, limits.execution_max_ms, limits.execution_ms);
    g->keep_ms = 1000 * field_count(&q->in, "keepSeconds", 0,
                                    q->front->settings.max_timeout_ms / 1000, KEEP_S);
    g->wait_ms = checkpoint_wait_field(&q->in);
    read_codes(g, &limits);
}

static void explore(struct http_req *req)
{
    struct e2b_req *q = e2b_of(req);
    struct explore *g = NEW(struct explore, .req = req, .q = q, .tenant = q->tenant);

    outlet_init(&g->outlet, req, TOOL_ANSWER_MAX + REPLY_LONG_MAX);
    g->sanitise = take_own_fields(q, NULL);
    read_request(g);
    bool large = q->in.r == -E2BIG;
    if (large)
        reply_error(req, 413, "%s", q->wrong.message);
    if (large || !e2b_read(q) || !check_id(q)) {
        explore_free(g);
        return;
    }
    q->work = g;
    q->on_gone = on_gone;
    req->on_writable = on_writable;
    g->waiting = true;
    struct explore_ask ask = {.tenant = &g->tenant,
                              .context = q->id,
                              .n = g->n,
                              .wait_ms = g->wait_ms,
                              .life_ms = g->timeout_ms + GRACE_MS,
                              .copy = spec_copy};
    context_explore(q->front, &ask, on_candidates, g);
}

void v1_explore(struct http_req *req)
{
    e2b_with_body(req, BODY_MAX, explore);
}

/* ---- adopt ----------------------------------------------------------------------------------- */

static void on_adopted(void *arg, const struct context_answer *a)
{
    struct e2b_req *q = arg;
    struct reply r;

    if (!e2b_back(q) || !reply_usable_active(q, a))
        return;
    struct json *j = reply_begin(&r, REPLY_MAX);
    shape_context(jw_key(j, "context"), a->row);
    reply_send(q, 200, &r);
}

void v1_adopt(struct http_req *req)
{
    struct e2b_req *q = e2b_of(req);

    check_body(q, "candidateId");
    const char *candidate = field_text(&q->in, "candidateId", CTX_NAME_MAX, "");
    if (!id_valid(candidate))
        field_wrong(&q->in, "'candidateId' is required: one from the answer of explore");
    if (!e2b_read(q) || !check_id(q))
        return;
    e2b_wait(q);
    context_adopt(q->front, &q->tenant, q->id, candidate, on_adopted, q);
}
