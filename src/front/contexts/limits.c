/* The limits of a tenant: its own (`sandglass tenant set`), or else the server's settings. */
#include "front/contexts/context.h"

static uint64_t either(uint64_t own, uint64_t setting)
{
    return own ? own : setting;
}

void context_limits(const struct front *f, const struct store_tenant *t, struct context_limits *ret)
{
    const struct settings *s = &f->settings;

    ret->tenant = (uint32_t)either(t->max_contexts, s->tenant_contexts);
    ret->conversation = (uint32_t)either(t->max_conversation_contexts, s->conversation_contexts);
    ret->execution_ms = either(t->execution_timeout_ms, s->execution_timeout_ms);
    ret->execution_max_ms = either(t->execution_timeout_max_ms, s->execution_timeout_max_ms);
    ret->code_max = (size_t)either(t->code_max, s->code_max);
    /* One limit may be the tenant's and the other the server's. If they conflict, the maximum
     * wins. */
    if (ret->execution_ms > ret->execution_max_ms)
        ret->execution_ms = ret->execution_max_ms;
}
