/* What tells a program inside that it runs in a sandbox, and in which. */
#pragma once

#include "front/core/sandbox.h"

/* Writes /run/e2b/.E2B_SANDBOX, .E2B_SANDBOX_ID and .E2B_TEMPLATE_ID. Sent ahead of any other
 * request, so whatever comes later finds them; nobody waits for it. */
void identity_write(struct sandbox *b);
/* Variables in a request of the agent: n u32, "K=V" str... Those that every program of the sandbox
 * has, TRACEPARENT if it is started in a trace (NULL: in none), then the sandbox's own, then
 * `more`, an object of strings or NULL; the last of a name counts. */
void identity_put_envs(const struct sandbox *b, const struct trace_ref *trace, json_t *more,
                       struct strbuf *request);
/* The same with nothing but an object of strings, or NULL; and with a trace. */
void envs_put(json_t *envs, struct strbuf *request);
void envs_put_traced(json_t *envs, const struct trace_ref *trace, struct strbuf *request);
