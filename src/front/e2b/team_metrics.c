/* How many sandboxes a team has and starts, over time (front/core/team_metrics.h). */
#include <string.h>

#include "front/core/team_metrics.h"
#include "front/e2b/accounts.h"
#include "front/e2b/range.h"
#include "front/e2b/request.h"
#include "front/e2b/shape.h"
#include "lib/base/clock.h"

#define ANSWER_MAX (4u * 1024 * 1024)
#define HOUR_S     3600
#define DAY_S      (24 * HOUR_S)
#define WEEK_S     (7 * DAY_S)

/* E2B's steps, but never less than what is kept. */
static int64_t step_of(const struct range *at)
{
    static const struct {
        int64_t below, step;
    } steps[] = {{12 * HOUR_S, 60}, {DAY_S, 120}, {WEEK_S, 300}};

    int64_t seconds = (at->to_ms - at->from_ms) / 1000, step = 900;

    for (size_t i = ARRAY_SIZE(steps); i-- > 0;)
        if (seconds < steps[i].below)
            step = steps[i].step;
    bool fine = at->from_ms / 1000 >= team_metrics_fine_from();
    return fine || step > STORE_METRIC_COARSE_S ? step : STORE_METRIC_COARSE_S;
}

static void write_time(struct json *j, int64_t at)
{
    shape_time_key(j, "timestamp", at * 1000);
    jw_i64(jw_key(j, "timestampUnix"), at);
}

/* Whether the path names the team that asks, and when. False: answered. */
static bool read_request(struct e2b_req *q, struct range *ret)
{
    const char *id = q->http->params[0];
    int64_t now = clock_wall_ms();

    if (strcmp(id, q->tenant.id) != 0 && strcmp(id, q->tenant.name) != 0) {
        reply_error(q->http, 403,
                    "You (%s) are not authorized to access this team's (%.64s) metrics",
                    q->tenant.id, id);
        return false;
    }
    *ret = range_of_request(q, now - WEEK_S * 1000ll, now);
    return e2b_read(q);
}

/* The beginning of the row that the range begins in. */
static int64_t start_of(const struct range *at)
{
    int64_t from = at->from_ms / 1000;

    return from - from % (from >= team_metrics_fine_from() ? 60 : STORE_METRIC_COARSE_S);
}

struct series {
    struct json j;
    int64_t step;
};

static void add_point(const struct store_team_metric *m, void *arg)
{
    struct series *s = arg;

    jw_object_begin(&s->j);
    write_time(&s->j, m->at);
    jw_u64(jw_key(&s->j, "concurrentSandboxes"), m->peak);
    jw_fixed(jw_key(&s->j, "sandboxStartRate"), m->started * 1000000ull / (uint64_t)s->step, 6);
    jw_object_end(&s->j);
}

void team_metrics(struct http_req *req)
{
    AUTO(strbuf_done) struct strbuf out = strbuf_upto(ANSWER_MAX);
    struct e2b_req *q = e2b_of(req);
    struct sg_error e;
    struct range at;

    if (!read_request(q, &at))
        return;
    struct series s = {.j.out = &out, .step = step_of(&at)};
    jw_array_begin(&s.j);
    int r = team_metrics_each(q->front, q->tenant.id, start_of(&at), at.to_ms / 1000, s.step,
                              add_point, &s, &e);
    jw_array_end(&s.j);
    if (r < 0)
        reply_sg_error(req, &e);
    else
        reply_json(req, 200, &out);
}

struct most {
    bool rate;
    int64_t at;
    uint64_t value; /* in thousandths */
};

static void take_most(const struct store_team_metric *m, void *arg)
{
    struct most *most = arg;
    uint64_t value = most->rate ? m->burst * 1000ull / TEAM_METRICS_PERIOD_S : m->peak * 1000ull;

    if (value <= most->value)
        return;
    most->value = value;
    most->at = m->at;
}

void team_metrics_max(struct http_req *req)
{
    const char *metric = http_query_get(req, "metric");
    struct e2b_req *q = e2b_of(req);
    struct sg_error e;
    struct range at;
    struct reply r;

    if (!metric ||
        (strcmp(metric, "concurrent_sandboxes") != 0 && strcmp(metric, "sandbox_start_rate") != 0))
        fields_invalid(&q->in, "Invalid metric: it is concurrent_sandboxes or sandbox_start_rate");
    if (!read_request(q, &at))
        return;
    struct most most = {.rate = strcmp(metric, "sandbox_start_rate") == 0,
                        .at = clock_wall_ms() / 1000};
    if (team_metrics_each(q->front, q->tenant.id, start_of(&at), at.to_ms / 1000, 60, take_most,
                          &most, &e) < 0) {
        reply_sg_error(req, &e);
        return;
    }
    struct json *j = reply_begin(&r, ANSWER_MAX);
    write_time(j, most.at);
    jw_fixed(jw_key(j, "value"), most.value, 3);
    reply_send(q, 200, &r);
}
