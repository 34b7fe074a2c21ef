#include "front/v1/shape.h"

#include "front/e2b/shape.h"

void shape_text_key(struct json *j, const char *key, const char *value)
{
    jw_string(jw_key(j, key), value);
}

void shape_nullable_key(struct json *j, const char *key, const char *value)
{
    shape_text_key(j, key, value[0] ? value : NULL);
}

void shape_nullable_time_key(struct json *j, const char *key, int64_t ms)
{
    if (ms > 0)
        shape_time_key(j, key, ms);
    else
        jw_null(jw_key(j, key));
}

void shape_usage(struct json *j, const struct ctx_usage *u)
{
    const struct {
        const char *key;
        uint64_t value;
    } counts[] = {
        {"bytesIn", u->bytes_in},
        {"bytesOut", u->bytes_out},
        {"executions", u->executions},
        {"sandboxes", u->sandboxes},
        {"egressBytes", u->egress_up + u->egress_down},
        {"egressBytesOut", u->egress_up},
        {"egressBytesIn", u->egress_down},
    };

    jw_fixed(jw_key(j, "cpuSeconds"), u->cpu_us / 1000, 3);
    jw_fixed(jw_key(j, "memoryGibSeconds"),
             u->memory_mib_ms / 1024 * 1000 + u->memory_mib_ms % 1024 * 1000 / 1024, 6);
    for (size_t i = 0; i < ARRAY_SIZE(counts); i++)
        jw_u64(jw_key(j, counts[i].key), counts[i].value);
}

void shape_context(struct json *j, const struct ctx_row *row)
{
    if (!row) {
        jw_null(j);
        return;
    }
    jw_object_begin(j);
    shape_text_key(j, "id", row->id);
    shape_text_key(j, "tenantId", row->tenant);
    shape_text_key(j, "conversationId", row->conversation);
    shape_text_key(j, "pathId", row->path);
    shape_nullable_key(j, "parentPathId", row->parent);
    shape_nullable_key(j, "sandboxId", row->sandbox_id);
    shape_text_key(j, "sandboxStatus", ctx_status_text(row->status));
    shape_text_key(j, "templateId", row->template_id);
    jw_u64(jw_key(j, "ttlSeconds"), row->ttl_ms / 1000);
    shape_time_key(j, "createdAt", row->created_ms);
    shape_time_key(j, "lastUsedAt", row->used_ms);
    shape_time_key(j, "expiresAt", row->expires_ms);
    shape_nullable_time_key(j, "terminatedAt", row->terminated_ms);
    shape_nullable_key(j, "errorMessage", row->error);
    jw_object_begin(jw_key(j, "resourceUsage"));
    shape_usage(j, &row->usage);
    jw_object_end(j);
    jw_object_end(j);
}

void shape_path(struct json *j, const struct ctx_path *p)
{
    jw_object_begin(j);
    shape_text_key(j, "pathId", p->path);
    shape_nullable_key(j, "parentPathId", p->parent);
    shape_nullable_key(j, "mergedInto", p->merged_into);
    shape_time_key(j, "createdAt", p->created_ms);
    shape_nullable_key(j, "contextId", p->context);
    shape_text_key(j, "sandboxStatus", p->context[0] ? ctx_status_text(p->status) : NULL);
    jw_object_end(j);
}

void shape_obtained(struct json *j, const struct context_answer *a)
{
    shape_context(jw_key(j, "context"), a->row);
    jw_key(j, "sandbox");
    if (a->sandbox)
        shape_sandbox(j, a->sandbox);
    else
        jw_null(j);
    jw_bool(jw_key(j, "wasCreated"), a->created);
}
