#include "front/e2b/shape.h"

#include "lib/base/clock.h"
#include "lib/json/values.h"

void shape_time_key(struct json *j, const char *key, int64_t ms)
{
    char text[CLOCK_TEXT_LEN];

    clock_text(ms, text);
    jw_string(jw_key(j, key), text);
}

void shape_value(struct json *j, const json_t *v)
{
    /* The iterator does not change the object, but its type is not const. */
    json_t *walk = (json_t *)(uintptr_t)v;

    switch (v ? json_typeof(v) : JSON_NULL) {
    case JSON_OBJECT:
        jw_object_begin(j);
        for (void *at = json_object_iter(walk); at; at = json_object_iter_next(walk, at)) {
            jw_key(j, json_object_iter_key(at));
            shape_value(j, json_object_iter_value(at));
        }
        jw_object_end(j);
        break;
    case JSON_ARRAY:
        jw_array_begin(j);
        for (size_t i = 0; i < json_array_size(v); i++)
            shape_value(j, json_array_get(v, i));
        jw_array_end(j);
        break;
    case JSON_STRING:
        jw_bytes(j, json_string_value(v), json_string_length(v));
        break;
    case JSON_INTEGER:
        jw_i64(j, json_integer_value(v));
        break;
    case JSON_TRUE:
    case JSON_FALSE:
        jw_bool(j, json_is_true(v));
        break;
    case JSON_REAL: /* no value that we keep has a fraction */
    case JSON_NULL:
        jw_null(j);
        break;
    }
}

/* Writes "" as null. */
static void key_nullable(struct json *j, const char *key, const char *value)
{
    jw_string(jw_key(j, key), value[0] ? value : NULL);
}

bool shape_is_paused(const struct sandbox *b)
{
    return b->state == SANDBOX_PAUSED || b->busy == BUSY_PAUSING;
}

static void identity(struct json *j, const struct sandbox *b)
{
    jw_string(jw_key(j, "templateID"), b->spec.template_id);
    jw_string(jw_key(j, "sandboxID"), b->id);
    jw_string(jw_key(j, "clientID"), SHAPE_CLIENT_ID);
    jw_string(jw_key(j, "envdVersion"), FRONT_ENVD_VERSION);
    if (b->spec.alias[0])
        jw_string(jw_key(j, "alias"), b->spec.alias);
}

void shape_sandbox(struct json *j, const struct sandbox *b)
{
    jw_object_begin(j);
    identity(j, b);
    if (b->spec.envd_token[0])
        jw_string(jw_key(j, "envdAccessToken"), b->spec.envd_token);
    key_nullable(j, "trafficAccessToken", b->spec.traffic_token);
    key_nullable(j, "domain", b->front->settings.domain);
    jw_object_end(j);
}

static void volume_mounts(struct json *j, const json_t *mounts)
{
    json_t *mount;
    size_t i;

    jw_array_begin(jw_key(j, "volumeMounts"));
    json_array_foreach(mounts, i, mount)
    {
        jw_object_begin(j);
        jw_string(jw_key(j, "name"), jr_text(mount, "name"));
        jw_string(jw_key(j, "path"), jr_text(mount, "path"));
        if (json_is_true(json_object_get(mount, "readOnly")))
            jw_bool(jw_key(j, "readOnly"), true);
        jw_object_end(j);
    }
    jw_array_end(j);
}

/* Writes the fields that the list and the details share. */
static void status(struct json *j, const struct sandbox *b)
{
    const struct sg_limits *l = &b->spec.limits;

    identity(j, b);
    shape_time_key(j, "startedAt", b->spec.started_ms);
    shape_time_key(j, "endAt", b->end_ms);
    jw_string(jw_key(j, "state"), shape_is_paused(b) ? "paused" : "running");
    jw_u64(jw_key(j, "cpuCount"), spec_cpus(l));
    jw_u64(jw_key(j, "memoryMB"), spec_mib(l->memory_bytes));
    jw_u64(jw_key(j, "diskSizeMB"), spec_mib(l->disk_bytes));
    if (b->spec.metadata) {
        jw_key(j, "metadata");
        shape_value(j, b->spec.metadata);
    }
    volume_mounts(j, b->spec.volumes);
}

void shape_listed(struct json *j, const struct sandbox *b)
{
    jw_object_begin(j);
    status(j, b);
    jw_object_end(j);
}

/* Writes the rules as the client gave them, but without the proxy's password, which is never shown
 * again. */
static void network(struct json *j, const json_t *given)
{
    json_t *copy = json_deep_copy(given), *proxy = json_object_get(copy, "egressProxy");

    json_object_del(proxy, "password");
    shape_value(j, copy);
    json_decref(copy);
}

void shape_detail(struct json *j, const struct sandbox *b)
{
    const struct sandbox_spec *s = &b->spec;

    jw_object_begin(j);
    status(j, b);
    if (s->envd_token[0])
        jw_string(jw_key(j, "envdAccessToken"), s->envd_token);
    key_nullable(j, "domain", b->front->settings.domain);
    jw_key(j, "allowInternetAccess");
    if (s->allow_internet < 0)
        jw_null(j);
    else
        jw_bool(j, s->allow_internet);
    if (s->network) {
        jw_key(j, "network");
        network(j, s->network);
    }
    jw_object_begin(jw_key(j, "lifecycle"));
    jw_bool(jw_key(j, "autoResume"), s->auto_resume);
    jw_string(jw_key(j, "onTimeout"), s->auto_pause ? "pause" : "kill");
    jw_object_end(j);
    jw_object_end(j);
}

void shape_metric(struct json *j, const struct metric *m, const struct sandbox *b)
{
    const struct {
        const char *key;
        uint64_t value;
    } sizes[] = {
        {"memUsed", m->memory_used}, {"memTotal", m->memory_total}, {"memCache", m->memory_cache},
        {"diskUsed", m->disk_used},  {"diskTotal", m->disk_total},
    };
    double pct = m->cpu_pct > 0 ? (double)m->cpu_pct : 0;

    jw_object_begin(j);
    shape_time_key(j, "timestamp", m->ms);
    jw_i64(jw_key(j, "timestampUnix"), m->ms / 1000);
    jw_u64(jw_key(j, "cpuCount"), spec_cpus(&b->spec.limits));
    jw_fixed(jw_key(j, "cpuUsedPct"), (uint64_t)(pct * 100 + 0.5), 2);
    for (size_t i = 0; i < ARRAY_SIZE(sizes); i++)
        jw_u64(jw_key(j, sizes[i].key), sizes[i].value);
    jw_object_end(j);
}
