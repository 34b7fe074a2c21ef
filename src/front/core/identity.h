/* Files and variables that tell a program that it runs in a sandbox, and in which one. */
#pragma once

#include "front/core/sandbox.h"

#define IDENTITY_DIR "/run/e2b"

/* The template whose sandboxes have the program `mcp-gateway`. */
#define GATEWAY_TEMPLATE "mcp-gateway"

/* Writes /run/e2b/.E2B_SANDBOX, .E2B_SANDBOX_ID and .E2B_TEMPLATE_ID, and the gateway. The write is sent ahead of
 * all other requests, so later ones find the files; nobody waits for its answer. */
void identity_write(struct sandbox *b);
/* Appends variables to a request for the agent: n u32, "K=V" str... In this order: those that every
 * program of the sandbox gets, TRACEPARENT if the program is started in a trace (trace NULL: it is
 * not), the sandbox's own, and `more` (an object of strings, or NULL). If a name occurs twice, the
 * last value counts. */
void identity_put_envs(const struct sandbox *b, const struct trace_ref *trace, json_t *more,
                       struct strbuf *request);
/* Append only the variables of an object of strings, or NULL; the second adds TRACEPARENT. */
void envs_put(json_t *envs, struct strbuf *request);
void envs_put_traced(json_t *envs, const struct trace_ref *trace, struct strbuf *request);
