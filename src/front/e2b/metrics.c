/* The resources that sandboxes use, from the samples that front/core/metrics.h keeps. */
#include "lib/base/clock.h"
#include "front/e2b/range.h"
#include "front/e2b/sandbox.h"
#include "front/e2b/shape.h"

#define ANSWER_MAX (1024u * 1024)
#define IDS_MAX    100

static void reply_range(struct http_req *req, const struct sandbox *b, const struct range *range)
{
    AUTO(strbuf_done) struct strbuf out = strbuf_upto(ANSWER_MAX);
    struct json j = {.out = &out};

    jw_array_begin(&j);
    for (uint32_t i = 0; i < sandbox_metrics_count(&b->metrics); i++) {
        const struct metric *m = sandbox_metrics_get(&b->metrics, i);

        if (m->ms >= range->from_ms && m->ms <= range->to_ms)
            shape_metric(&j, m, b);
    }
    jw_array_end(&j);
    reply_json(req, 200, &out);
}

/* Waits for the first sample of a sandbox that is too young to have one. */
struct first_sample {
    struct e2b_req *q;
    struct sandbox *sandbox;
    struct range range;
};

/* The sample is kept with the others. */
static void on_sample(void *arg, const struct metric *m UNUSED)
{
    struct first_sample *s = arg;

    if (e2b_back(s->q))
        reply_range(s->q->http, s->sandbox, &s->range);
    sandbox_unref(s->sandbox);
    free(s);
}

void e2b_sandbox_metrics(struct http_req *req)
{
    struct e2b_req *q = e2b_of(req);
    struct sandbox *b = e2b_sandbox(q);
    struct range range = range_of_request(q, 0, INT64_MAX);
    int64_t now = clock_wall_ms();

    if (!b || !e2b_read(q))
        return;
    if (sandbox_metrics_count(&b->metrics) > 0 || b->state != SANDBOX_RUNNING ||
        b->busy != BUSY_NO || now < range.from_ms || now > range.to_ms) {
        reply_range(req, b, &range);
        return;
    }
    struct first_sample *s =
        NEW(struct first_sample, .q = q, .sandbox = sandbox_ref(b), .range = range);
    e2b_wait(q);
    sandbox_metrics_sample(b, on_sample, s);
}

/* The latest sample of each sandbox that is the tenant's own; others are left out. */
void sandboxes_metrics(struct http_req *req)
{
    AUTO(strbuf_done) struct strbuf out = strbuf_upto(ANSWER_MAX);
    struct e2b_req *q = e2b_of(req);
    const char *ids = http_query_get(req, "sandbox_ids");
    char id[ID_LEN + 1], part[2 * ID_LEN];
    struct json j = {.out = &out};
    unsigned n = 0;

    if (!ids || !ids[0]) {
        reply_error(req, 400, "Invalid sandbox_ids: none was given");
        return;
    }
    jw_object_begin(&j);
    jw_object_begin(jw_key(&j, "sandboxes"));
    for (const char *p = ids; *p; n++) {
        size_t len = strcspn(p, ",");

        snprintf(part, sizeof(part), "%.*s", (int)(len < sizeof(part) ? len : 0), p);
        struct sandbox *b =
            e2b_short_id(part, id) == 0 ? sandbox_get(q->front, q->tenant.id, id) : NULL;
        if (b && sandbox_metrics_count(&b->metrics) > 0) {
            jw_key(&j, b->id);
            shape_metric(
                &j, sandbox_metrics_get(&b->metrics, sandbox_metrics_count(&b->metrics) - 1), b);
        }
        p += len + (p[len] == ',');
    }
    jw_object_end(&j);
    jw_object_end(&j);
    if (n > IDS_MAX)
        reply_error(req, 400, "Invalid sandbox_ids: more than %d", IDS_MAX);
    else
        reply_json(req, 200, &out);
}
