/* OpenTelemetry's wire form, version 1: an ExportTraceServiceRequest, as protobuf (otlp_proto.c) or
 * as JSON (otlp_json.c). Both write a span by itself, as it ends; a request is then put together of
 * spans that are encoded already. */
#pragma once

#include "lib/text/strbuf.h"
#include "lib/settings/settings.h"
#include "front/telemetry/span.h"

#define OTLP_KIND_INTERNAL 1
#define OTLP_KIND_SERVER   2
#define OTLP_STATUS_ERROR  2
/* The upper bits of a span's flags: whether its parent is of another program is known. */
#define OTLP_PARENT_KNOWN  0x100u
#define OTLP_PARENT_REMOTE 0x200u

/* Who speaks: attributes of the resource. */
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

/* What goes with a span beside its own attributes: Langfuse's word for what it is, or NULL. */
struct otlp_form {
    const char *content_type;
    void (*add_span)(struct strbuf *out, const struct span *s, const char *observation);
    void (*add_request)(struct strbuf *out, const struct otlp_who *who,
                        const struct otlp_piece *spans, size_t n);
};
extern const struct otlp_form otlp_proto_form, otlp_json_form;

#define OTLP_OBSERVATION "langfuse.observation.type"

/* What another asks for is done for who asked: SERVER. What is done on the way is not. */
static inline int otlp_kind(const struct span *s)
{
    return s->is_step || s->parent.ours ? OTLP_KIND_INTERNAL : OTLP_KIND_SERVER;
}

static inline uint32_t otlp_flags(const struct span *s)
{
    uint32_t remote = s->parent.set && !s->parent.ours ? OTLP_PARENT_REMOTE : 0;

    return s->ref.flags | OTLP_PARENT_KNOWN | remote;
}
