/* GET /health, /metrics and /envs. */
#include "lib/text/json.h"
#include "front/envd/envd.h"
#include "front/core/defaults.h"
#include "front/core/reply.h"

#define ENVS_MAX (2u * 1024 * 1024)

void envd_health(struct sandbox *b UNUSED, struct http_req *req)
{
    http_add_header(req, "Cache-Control", "no-store");
    reply_empty(req, 204);
}

/* A request for figures. The client may be gone when the figures come. */
struct waiting {
    struct http_req *req; /* NULL: the client is gone */
    struct sandbox *sandbox;
};

static void on_close(struct http_req *req)
{
    struct waiting *w = req->owner;

    w->req = NULL;
}

static uint64_t cpu_count(const struct sandbox *b)
{
    return ((uint64_t)b->spec.limits.cpus_milli + 999) / 1000;
}

static void write_metric(struct strbuf *out, const struct sandbox *b, const struct metric *m)
{
    uint64_t cpus = cpu_count(b);
    float pct = (m->cpu_pct > 0 ? m->cpu_pct : 0) / (float)(cpus ? cpus : 1);
    struct json j = {.out = out};

    jw_object_begin(&j);
    jw_i64(jw_key(&j, "ts"), m->ms / 1000);
    jw_u64(jw_key(&j, "cpu_count"), cpus);
    jw_key(&j, "cpu_used_pct"); /* 100 is all processors together */
    jw_fixed(&j, (uint64_t)(pct * 100 + 0.5f), 2);
    const struct {
        const char *name;
        uint64_t value;
    } sizes[] = {
        {"mem_total_mib", m->memory_total >> 20},
        {"mem_used_mib", m->memory_used >> 20},
        {"mem_total", m->memory_total},
        {"mem_used", m->memory_used},
        {"mem_cache", m->memory_cache},
        {"disk_used", m->disk_used},
        {"disk_total", m->disk_total},
    };
    for (size_t i = 0; i < ARRAY_SIZE(sizes); i++)
        jw_u64(jw_key(&j, sizes[i].name), sizes[i].value);
    jw_object_end(&j);
}

static void on_sample(void *arg, const struct metric *m)
{
    AUTO(strbuf_done) struct strbuf out = strbuf_upto(4096);
    struct waiting *w = arg;

    if (w->req) {
        w->req->on_close = NULL;
        if (m) {
            write_metric(&out, w->sandbox, m);
            http_add_header(w->req, "Cache-Control", "no-store");
            reply_json(w->req, 200, &out);
        } else {
            reply_gone(w->req, w->sandbox);
        }
    }
    sandbox_unref(w->sandbox);
    free(w);
}

void envd_metrics(struct sandbox *b, struct http_req *req)
{
    struct waiting *w = NEW(struct waiting, .req = req, .sandbox = sandbox_ref(b));

    req->owner = w;
    req->on_close = on_close;
    sandbox_metrics_sample(b, on_sample, w);
}

void envd_envs(struct sandbox *b, struct http_req *req)
{
    const struct {
        const char *name, *value;
    } ours[] = {{"E2B_SANDBOX", "true"},
                {"E2B_SANDBOX_ID", b->id},
                {"E2B_TEMPLATE_ID", b->spec.template_id}};
    AUTO(strbuf_done) struct strbuf out = strbuf_upto(ENVS_MAX);
    json_t *all = json_object(), *value;
    const char *key;
    struct json j = {.out = &out};

    for (size_t i = 0; i < ARRAY_SIZE(ours); i++)
        json_object_set_new(all, ours[i].name, json_string(ours[i].value));
    json_object_update(all, defaults_envs(b->spec.defaults));
    json_object_update(all, b->spec.envs);
    jw_object_begin(&j);
    json_object_foreach(all, key, value)
    {
        jw_string(jw_key(&j, key), json_string_value(value));
    }
    jw_object_end(&j);
    json_decref(all);
    http_add_header(req, "Cache-Control", "no-store");
    reply_json(req, 200, &out);
}
