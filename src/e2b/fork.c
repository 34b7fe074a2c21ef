/* Fork: sandboxes with the files of one that runs. A snapshot is taken that has no name, the new
 * ones are made from it, and it is forgotten as soon as all of them hold it. Each of them may
 * fail by itself. */
#include "e2b/field.h"
#include "e2b/sandbox.h"
#include "e2b/shape.h"
#include "e2b/spec.h"

#define COUNT_MAX  100
#define ANSWER_MAX (1024u * 1024)

struct fork_result {
    struct fork *fork;
    struct box *box; /* NULL: failed, for the reason that follows */
    int status;
    char message[sizeof(((struct sg_error *)0)->message)];
};

struct fork {
    struct e2b_req *q;
    struct front *front;
    struct box_spec spec; /* what each becomes */
    uint64_t timeout_ms;
    char layer[ID_LEN + 1];
    size_t count, pending;
    struct fork_result results[];
};

static void fork_free(struct fork *f)
{
    for (size_t i = 0; i < f->count; i++)
        box_unref(f->results[i].box);
    box_spec_done(&f->spec);
    free(f);
}

static void reply_results(struct fork *f)
{
    AUTO(strbuf_done) struct strbuf out = {0};
    struct json j;

    strbuf_init(&out, ANSWER_MAX);
    jw_init(&j, &out);
    jw_array_begin(&j);
    for (size_t i = 0; i < f->count; i++) {
        const struct fork_result *r = &f->results[i];

        jw_object_begin(&j);
        jw_key(&j, r->box ? "sandbox" : "error");
        if (r->box)
            shape_sandbox(&j, r->box);
        else
            shape_error(&j, r->status, r->message);
        jw_object_end(&j);
    }
    jw_array_end(&j);
    reply_json(f->q->http, 201, &out);
}

static void finish(struct fork *f)
{
    box_forget_layer(f->front, f->layer);
    if (e2b_back(f->q)) {
        reply_results(f);
    } else {
        /* Nobody learned their ids. */
        for (size_t i = 0; i < f->count; i++)
            if (f->results[i].box)
                box_kill(f->results[i].box, NULL, NULL);
    }
    fork_free(f);
}

static void on_created(void *arg, struct box *b, int r, const struct sg_error *e)
{
    struct fork_result *result = arg;
    struct fork *f = result->fork;

    if (r == 0) {
        result->box = box_ref(b);
    } else {
        result->status = status_of_error(e);
        snprintf(result->message, sizeof(result->message), "%s",
                 result->status == 500 ? "Failed to create sandbox" : e->message);
    }
    if (--f->pending == 0)
        finish(f);
}

static void on_saved(void *arg, int r, const struct sg_error *e, uint64_t bytes)
{
    struct fork *f = arg;

    (void)bytes;
    if (r < 0) {
        if (e2b_back(f->q))
            e2b_failed(f->q, e);
        fork_free(f);
        return;
    }
    /* One more than there are, so that the last of them to fail at once does not end it. */
    f->pending = f->count + 1;
    for (size_t i = 0; i < f->count; i++) {
        struct box_spec spec;

        spec_copy(&f->spec, &spec);
        f->results[i].fork = f;
        box_create(f->front, &spec, f->layer, f->timeout_ms, on_created, &f->results[i]);
    }
    if (--f->pending == 0)
        finish(f);
}

/* False: answered. */
static bool parse_fork(struct e2b_req *q, uint64_t *ret_timeout_ms, int32_t *ret_count)
{
    struct sg_error e;
    bool given;
    int r = field_timeout(q->body, 1, SPEC_TIMEOUT_V1_S, q->front->settings.max_timeout_ms,
                          ret_timeout_ms, &e);

    *ret_count = 1;
    if (r == 0)
        r = field_int(q->body, "count", &given, ret_count, &e);
    if (r < 0)
        reply_sg_error(q->http, &e);
    else if (*ret_count < 1)
        reply_error(q->http, 400, "Count must be at least 1");
    else if (*ret_count > COUNT_MAX)
        reply_error(q->http, 400, "Count cannot be greater than %d", COUNT_MAX);
    else if ((uint32_t)*ret_count >= e2b_sandbox_limit(q))
        reply_error(q->http, 400,
                    "Count must be lower than the maximum number of concurrent sandboxes (%u)",
                    e2b_sandbox_limit(q));
    else
        return true;
    return false;
}

static void fork_with_body(struct e2b_req *q)
{
    uint64_t timeout_ms;
    int32_t count;

    if (!parse_fork(q, &timeout_ms, &count))
        return;
    struct box *b = e2b_box(q);
    if (!b)
        return;
    if (shape_is_paused(b)) {
        reply_error(q->http, 409, "Sandbox '%s' is paused and cannot be forked; resume it first",
                    b->id);
        return;
    }
    struct fork *f = xcalloc(1, sizeof(*f) + (size_t)count * sizeof(f->results[0]));
    *f = (struct fork){.q = q, .front = q->front, .timeout_ms = timeout_ms, .count = (size_t)count};
    spec_copy(&b->spec, &f->spec);
    id_random(f->layer);
    e2b_wait(q);
    box_snapshot(b, f->layer, false, on_saved, f);
}

void sandbox_fork(struct http_req *req)
{
    e2b_with_body(req, fork_with_body);
}
