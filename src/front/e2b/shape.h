/* The JSON objects of answers, as E2B's programs read them. */
#pragma once

#include <jansson.h>

#include "lib/text/json.h"
#include "front/core/sandbox.h"
#include "front/core/metrics.h"
#include "front/store/store.h"

#define SHAPE_CLIENT_ID "sandglass" /* deprecated, but every answer must have it */

void shape_time_key(struct json *j, const char *key, int64_t ms);
/* Writes a value of jansson. */
void shape_value(struct json *j, const json_t *v);

/* The answer of create, connect, resume and fork: with the sandbox's tokens. */
void shape_sandbox(struct json *j, const struct sandbox *b);
void shape_detail(struct json *j, const struct sandbox *b);
void shape_listed(struct json *j, const struct sandbox *b);
void shape_metric(struct json *j, const struct metric *m, const struct sandbox *b);

/* A sandbox that is being paused counts as paused: it can be resumed, and nothing else. */
bool shape_is_paused(const struct sandbox *b);
