/* Fork: makes sandboxes with the files and the kernels of one that runs. A fork takes a checkpoint,
 * makes all the new sandboxes from it at once, and forgets it after the last. All are made or none:
 * if one cannot be made, the others are ended, and the answer says why.
 *
 *   inherit: "state"    copies the kernels that can be copied; the answer reports on each kernel
 *            "replay"   the same, and runs the cells of the other kernels again
 *            "files"    takes a snapshot without a name instead, whatever runs
 *
 * Some hosts cannot copy kernels at all. There "state" copies the files alone too, and says so. */
#include "front/e2b/checkpoints.h"
#include "front/e2b/sandbox.h"
#include "front/e2b/shape.h"
#include "front/e2b/spec.h"
#include "front/core/checkpoint.h"
#include "front/core/lifecycle.h"
#include "front/core/operation.h"

#define COUNT_MAX  100
#define ANSWER_MAX (16u * 1024 * 1024)

enum inherit { INHERIT_STATE, INHERIT_REPLAY, INHERIT_FILES };

struct fork_result {
    struct fork *fork;
    struct sandbox *sandbox; /* NULL: not yet made, or failed */
    json_t *report;          /* on the sandbox's kernels, or NULL */
};

struct fork {
    struct e2b_req *q;
    struct front *front;
    struct sandbox *source;
    struct sandbox_spec spec; /* of each new sandbox */
    uint64_t timeout_ms;
    enum inherit inherit;
    char snapshot[ID_LEN + 1];
    struct operation operation;
    size_t count, pending;
    int r; /* of the first failure */
    struct sg_error e;
    json_t *report; /* of the first failure; or, for files alone, of every sandbox */
    struct fork_result results[];
};

static void fork_free(struct fork *f)
{
    for (size_t i = 0; i < f->count; i++) {
        sandbox_unref(f->results[i].sandbox);
        json_decref(f->results[i].report);
    }
    json_decref(f->report);
    sandbox_unref(f->source);
    sandbox_spec_done(&f->spec);
    free(f);
}

static void reply_results(struct fork *f)
{
    AUTO(strbuf_done) struct strbuf out = strbuf_upto(ANSWER_MAX);
    struct json j = {.out = &out};

    jw_array_begin(&j);
    for (size_t i = 0; i < f->count; i++) {
        const struct fork_result *r = &f->results[i];

        jw_object_begin(&j);
        jw_key(&j, "sandbox");
        shape_sandbox(&j, r->sandbox);
        report_put(&j, r->report);
        jw_object_end(&j);
    }
    jw_array_end(&j);
    reply_json(f->q->http, 201, &out);
}

static void fork_over(struct fork *f)
{
    bool client_there = e2b_back(f->q);

    operation_end(&f->operation, f->front, f->source, f->r, &f->e, NULL);
    if (f->snapshot[0])
        sandbox_forget_snapshot(f->front, f->snapshot);
    /* Without a client, nobody has learned the ids of the new sandboxes. */
    for (size_t i = 0; (f->r < 0 || !client_there) && i < f->count; i++)
        if (f->results[i].sandbox)
            sandbox_kill(f->results[i].sandbox, NULL, NULL);
    if (client_there && f->r == 0)
        reply_results(f);
    else if (client_there)
        checkpoint_failed(f->q, f->r, &f->e, f->report);
    fork_free(f);
}

static void fork_failed(struct fork *f, int r, const struct sg_error *e, const json_t *report)
{
    if (f->r < 0)
        return;
    f->r = r;
    f->e = *e;
    json_decref(f->report);
    f->report = report ? json_deep_copy(report) : NULL;
}

static void one_done(struct fork *f)
{
    if (--f->pending == 0)
        fork_over(f);
}

static void on_forked(void *arg, struct sandbox *b, int r, const struct sg_error *e,
                      const json_t *report)
{
    struct fork_result *result = arg;

    if (r < 0) {
        fork_failed(result->fork, r, e, report);
    } else {
        result->sandbox = sandbox_ref(b);
        result->report = report ? json_deep_copy(report) : NULL;
    }
    one_done(result->fork);
}

/* A sandbox was made from the files alone. */
static void on_created(void *arg, struct sandbox *b, int r, const struct sg_error *e)
{
    const struct fork_result *result = arg;

    on_forked(arg, b, r, e, r == 0 ? result->fork->report : NULL);
}

/* Makes the sandboxes from checkpoint c or, if it is NULL, from the snapshot's layer. `pending` is
 * one more than the sandboxes, so that failures during this loop cannot end the fork. */
static void make_all(struct fork *f, struct checkpoint *c)
{
    struct trace_ref before = operation_enter(&f->operation.trace);

    /* Not sandbox_create: nobody asks for this snapshot again, so none need wait for that. */
    struct sandbox_make files = {.snapshot = f->snapshot, .timeout_ms = f->timeout_ms};

    f->pending = f->count + 1;
    for (size_t i = 0; i < f->count; i++) {
        struct fork_ask ask = {.timeout_ms = f->timeout_ms,
                               .last = i + 1 == f->count,
                               .replay = f->inherit == INHERIT_REPLAY};
        struct sandbox_spec spec;

        spec_copy(&f->spec, &spec);
        f->results[i].fork = f;
        if (c)
            sandbox_create_from(f->front, &spec, c, &ask, on_forked, &f->results[i]);
        else
            sandbox_make(f->front, &spec, &files, on_created, &f->results[i]);
    }
    operation_leave(&before);
    one_done(f);
}

static void on_saved(void *arg, int r, const struct sg_error *e, uint64_t bytes UNUSED)
{
    struct fork *f = arg;

    if (r == 0) {
        make_all(f, NULL);
        return;
    }
    f->snapshot[0] = '\0';
    fork_failed(f, r, e, NULL);
    fork_over(f);
}

static void save_files(struct fork *f)
{
    struct trace_ref before = operation_enter(&f->operation.trace);

    id_random(f->snapshot);
    sandbox_snapshot(f->source, f->snapshot, false, on_saved, f);
    operation_leave(&before);
}

static void on_checkpoint(void *arg, struct checkpoint *c, int r, const struct sg_error *e,
                          const json_t *report)
{
    struct fork *f = arg;

    if (r == -EOPNOTSUPP && f->inherit == INHERIT_STATE) {
        f->report = report ? json_deep_copy(report) : NULL;
        save_files(f);
    } else if (r < 0) {
        fork_failed(f, r, e, report);
        fork_over(f);
    } else {
        make_all(f, c);
    }
}

struct fork_request {
    uint64_t timeout_ms, wait_ms;
    int32_t count;
    enum inherit inherit;
};

/* False: answered. */
static bool parse_fork(struct e2b_req *q, struct fork_request *ret)
{
    static const char *const inherits[] = {
        [INHERIT_STATE] = "state", [INHERIT_REPLAY] = "replay", [INHERIT_FILES] = "files"};

    ret->timeout_ms =
        field_timeout(&q->in, 1, SPEC_TIMEOUT_V1_S, q->front->settings.max_timeout_ms);
    ret->count = field_int(&q->in, "count", 1);
    ret->inherit = (enum inherit)field_word(&q->in, "inherit", inherits, ARRAY_SIZE(inherits),
                                            INHERIT_STATE, "\"state\", \"files\" or \"replay\"");
    ret->wait_ms = checkpoint_wait_field(&q->in);
    if (ret->count < 1)
        fields_invalid(&q->in, "Count must be at least 1");
    else if (ret->count > COUNT_MAX)
        fields_invalid(&q->in, "Count cannot be greater than %d", COUNT_MAX);
    else if ((uint32_t)ret->count >= e2b_sandbox_limit(q))
        fields_invalid(&q->in,
                       "Count must be lower than the maximum number of concurrent sandboxes (%u)",
                       e2b_sandbox_limit(q));
    return e2b_read(q);
}

/* Checks the limits before anything is copied. False: answered. */
static bool has_room(struct e2b_req *q, const struct sandbox *b, int32_t count)
{
    size_t limit = e2b_sandbox_limit(q), run = sandboxes_count(q->front, q->tenant.id);

    struct sg_error e;

    if (run + (size_t)count <= limit) {
        if (!b->spec.auto_pause ||
            sandboxes_check_paused(q->front, q->tenant.id, (size_t)count, &e) == 0)
            return true;
        reply_sg_error(q->http, &e);
        return false;
    }
    reply_error(q->http, 429,
                "you have reached the maximum number of concurrent sandboxes: the limit is %zu, "
                "%zu run and %d are asked for; kill or pause some first",
                limit, run, count);
    return false;
}

void sandbox_fork(struct http_req *req)
{
    struct e2b_req *q = e2b_of(req);
    struct fork_request want;
    struct sandbox *b;

    if (!parse_fork(q, &want))
        return;
    b = e2b_sandbox(q);
    if (!b)
        return;
    if (shape_is_paused(b)) {
        reply_error(q->http, 409, "Sandbox '%s' is paused and cannot be forked; resume it first",
                    b->id);
        return;
    }
    if (!has_room(q, b, want.count))
        return;
    struct fork *f = xcalloc(1, sizeof(*f) + (size_t)want.count * sizeof(f->results[0]));
    *f = (struct fork){.q = q,
                       .front = q->front,
                       .source = sandbox_ref(b),
                       .timeout_ms = want.timeout_ms,
                       .inherit = want.inherit,
                       .count = (size_t)want.count};
    spec_copy(&b->spec, &f->spec);
    operation_begin(&f->operation, OPERATION_FORK);
    operation_sandbox(&f->operation, b);
    span_number(f->operation.span, KEY_COUNT, want.count);
    e2b_wait(q);
    struct trace_ref before = operation_enter(&f->operation.trace);
    if (want.inherit == INHERIT_FILES) {
        f->report = json_pack("{s:[]}", "kernels");
        save_files(f);
    } else {
        struct checkpoint_ask ask = {
            .kind = CHECKPOINT_FORK, .wait_ms = want.wait_ms, .one = want.count == 1};
        sandbox_checkpoint(b, &ask, on_checkpoint, f);
    }
    operation_leave(&before);
}
