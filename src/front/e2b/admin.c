#include "front/e2b/admin.h"

#include <string.h>

#include "front/builds/build.h"
#include "front/core/request_log.h"
#include "front/e2b/accounts.h"
#include "front/e2b/request.h"
#include "lib/log/log.h"

#define ANSWER_MAX (1024u * 1024)

/* The team that the path names becomes the request's. False: answered. */
static bool take_team(struct e2b_req *q)
{
    if (store_tenant_named(q->front->store, q->http->params[0], &q->tenant) < 0) {
        reply_error(q->http, 404, "Team not found");
        return false;
    }
    request_log_about(q->http, q->tenant.id, NULL);
    return true;
}

static void reply_counts(struct e2b_req *q, const char *done, size_t n, size_t failed)
{
    struct reply r;
    struct json *j = reply_begin(&r, ANSWER_MAX);

    jw_u64(jw_key(j, done), n);
    jw_u64(jw_key(j, "failedCount"), failed);
    reply_send(q, 200, &r);
}

/* ---- sandboxes ------------------------------------------------------------------------------- */

static bool runs(const struct sandbox *b)
{
    return b->state == SANDBOX_RUNNING && !b->spec.standby;
}

void admin_running_counts(struct http_req *req)
{
    struct e2b_req *q = e2b_of(req);
    json_t *counts = json_object(), *n;
    const char *tenant;
    struct reply r;

    SANDBOXES_EACH(b, q->front)
        if (runs(b)) {
            n = json_object_get(counts, b->spec.tenant);
            json_object_set_new(counts, b->spec.tenant, json_integer(json_integer_value(n) + 1));
        }
    struct json *j = reply_begin(&r, ANSWER_MAX);
    json_object_foreach(counts, tenant, n) jw_i64(jw_key(j, tenant), json_integer_value(n));
    json_decref(counts);
    reply_send(q, 200, &r);
}

/* All kills of one request. */
struct killing {
    struct e2b_req *q;
    size_t pending, killed, failed;
};

static void one_less(struct killing *k)
{
    if (--k->pending > 0)
        return;
    log_line(LEVEL_INFO, "the operator has killed %zu sandboxes of a tenant, %zu failed", k->killed,
             k->failed);
    if (e2b_back(k->q))
        reply_counts(k->q, "killedCount", k->killed, k->failed);
    free(k);
}

static void on_killed(void *arg, struct sandbox *b UNUSED, int r, const struct sg_error *e UNUSED)
{
    struct killing *k = arg;

    k->killed += r == 0;
    k->failed += r < 0;
    one_less(k);
}

/* Those that run, as E2B does it: paused ones stay. */
void admin_kill_all(struct http_req *req)
{
    struct e2b_req *q = e2b_of(req);

    if (!take_team(q))
        return;
    struct killing *k = NEW(struct killing, .q = q, .pending = 1);
    e2b_wait(q);
    SANDBOXES_EACH(b, q->front)
        if (runs(b) && strcmp(b->spec.tenant, q->tenant.id) == 0) {
            k->pending++;
            sandbox_kill(b, on_killed, k);
        }
    one_less(k);
}

void admin_cancel_builds(struct http_req *req)
{
    struct e2b_req *q = e2b_of(req);

    if (take_team(q))
        reply_counts(q, "cancelledCount",
                     builds_cancel_all(q->front, q->tenant.id, "cancelled by admin"), 0);
}

/* ---- keys ------------------------------------------------------------------------------------ */

void admin_keys_list(struct http_req *req)
{
    struct e2b_req *q = e2b_of(req);

    if (take_team(q))
        keys_list_of(q);
}

void admin_key_create(struct http_req *req)
{
    struct e2b_req *q = e2b_of(req);

    if (take_team(q))
        key_create_for(q);
}

void admin_key_delete(struct http_req *req)
{
    struct e2b_req *q = e2b_of(req);

    if (take_team(q))
        key_end(q, req->params[1]);
}
