#include "front/core/identity.h"

#include <stdio.h>
#include <string.h>

#include "lib/channel/wire.h"
#include "front/core/call.h"
#include "front/core/defaults.h"
#include "front/core/egress.h"

#define DIR     IDENTITY_DIR "/."
#define GATEWAY "/usr/local/bin/mcp-gateway"

extern const char sg_mcp_gateway[], sg_mcp_gateway_end[]; /* front/tools/embed.S */

static void on_written(struct call *c, int status, const char *message, const void *result UNUSED,
                       size_t len UNUSED)
{
    if (status > 0)
        sandbox_log_add(&c->sandbox->log, LOG_WARN, FAULT_INFRASTRUCTURE, 0,
                        "%s could not be written: %s", (const char *)c->owner, message);
    sandbox_unref(c->sandbox);
    free(c);
}

static void write_file(struct sandbox *b, const char *path, uint32_t mode, const void *p,
                       size_t len)
{
    struct call *c =
        NEW(struct call, .owner = (void *)(uintptr_t)path, .uncounted = true, .on_end = on_written);

    if (call_write_file(c, b, "root", path, mode, p, len, NULL) < 0)
        free(c);
    else
        sandbox_ref(b);
}

static void write_text(struct sandbox *b, const char *path, const char *text)
{
    write_file(b, path, 0644, text, strlen(text));
}

void identity_write(struct sandbox *b)
{
    sandbox_cork(b);
    write_text(b, DIR "E2B_SANDBOX", "true");
    write_text(b, DIR "E2B_SANDBOX_ID", b->id);
    write_text(b, DIR "E2B_TEMPLATE_ID", b->spec.template_id);
    if (b->spec.gateway)
        write_file(b, GATEWAY, 0755, sg_mcp_gateway, (size_t)(sg_mcp_gateway_end - sg_mcp_gateway));
    sandbox_uncork(b);
}

void envs_put(json_t *envs, struct strbuf *request)
{
    const char *name;
    json_t *value;

    wire_put_u32(request, (uint32_t)json_object_size(envs));
    json_object_foreach(envs, name, value)
    {
        AUTO(strbuf_done) struct strbuf pair = strbuf_upto(OPS_OPEN_MAX);
        strbuf_addf(&pair, "%s=%s", name, json_string_value(value));
        request->truncated |= pair.truncated;
        wire_put_str(request, pair.buf);
    }
}

static void add_trace(json_t *envs, const struct trace_ref *trace)
{
    char text[TRACEPARENT_LEN + 1];

    if (!trace || !trace->set)
        return;
    trace_format(trace, text);
    json_object_set_new(envs, "TRACEPARENT", json_string(text));
}

void envs_put_traced(json_t *envs, const struct trace_ref *trace, struct strbuf *request)
{
    json_t *all = json_object();

    add_trace(all, trace);
    json_object_update(all, envs);
    envs_put(all, request);
    json_decref(all);
}

void identity_put_envs(const struct sandbox *b, const struct trace_ref *trace, json_t *more,
                       struct strbuf *request)
{
    json_t *all = json_pack("{s:s, s:s, s:s}", "E2B_SANDBOX", "true", "E2B_SANDBOX_ID", b->id,
                            "E2B_TEMPLATE_ID", b->spec.template_id);
    json_t *egress = egress_envs(&b->spec);

    json_object_update(all, egress);
    json_decref(egress);
    add_trace(all, trace);
    json_object_update(all, defaults_envs(b->spec.defaults));
    json_object_update(all, b->spec.envs);
    json_object_update(all, more);
    envs_put(all, request);
    json_decref(all);
}
