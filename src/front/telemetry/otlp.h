/* OpenTelemetry's wire form, version 1: an ExportTraceServiceRequest, as protobuf (otlp_proto.c) or
 * as JSON (otlp_json.c). Both encode each span by itself, as it ends. A request is later put
 * together from encoded spans. */
#pragma once

#include "lib/text/strbuf.h"
#include "lib/settings/settings.h"
#include "front/telemetry/span.h"

#define OTLP_KIND_INTERNAL 1
#define OTLP_KIND_SERVER   2
#define OTLP_STATUS_ERROR  2
/* The upper bits of a span's flags: we know whether its parent belongs to another program, and
 * whether it does. */
#define OTLP_PARENT_KNOWN  0x100u
#define OTLP_PARENT_REMOTE 0x200u

/* The attributes of the resource: which server sends the spans. */
#define OTLP_WHO 4
struct otlp_who {
    struct {
        const char *key, *value;
    } attributes[OTLP_WHO];
};

struct otlp_piece {
    const char *bytes;
    size_t len;
};

/* An encoder. observation: an attribute that a span gets beside its own, Langfuse's word for its
 * kind; or NULL. */
struct otlp_form {
    const char *content_type;
    void (*add_span)(struct strbuf *out, const struct span *s, const char *observation);
    void (*add_request)(struct strbuf *out, const struct otlp_who *who,
                        const struct otlp_piece *spans, size_t n);
};
extern const struct otlp_form otlp_proto_form, otlp_json_form;

#define OTLP_OBSERVATION "langfuse.observation.type"

/* A span that a client asked for is of kind SERVER. A step, or a span below one of ours, is
 * INTERNAL. */
static inline int otlp_kind(const struct span *s)
{
    return s->is_step || s->parent.ours ? OTLP_KIND_INTERNAL : OTLP_KIND_SERVER;
}

static inline uint32_t otlp_flags(const struct span *s)
{
    uint32_t remote = s->parent.set && !s->parent.ours ? OTLP_PARENT_REMOTE : 0;

    return s->ref.flags | OTLP_PARENT_KNOWN | remote;
}
