/* The objects of answers, as E2B's programs read them. */
#pragma once

#include <jansson.h>

#include "lib/text/json.h"
#include "front/core/sandbox.h"
#include "front/core/metrics.h"
#include "front/store/store.h"

#define SHAPE_CLIENT_ID "sandglass" /* deprecated, and still required of every answer */

void shape_time_key(struct json *j, const char *key, int64_t ms);
/* A value that jansson holds. */
void shape_value(struct json *j, const json_t *v);

/* What create, connect, resume and fork answer: with the sandbox's tokens. */
void shape_sandbox(struct json *j, const struct sandbox *b);
void shape_detail(struct json *j, const struct sandbox *b);
void shape_listed(struct json *j, const struct sandbox *b);
void shape_metric(struct json *j, const struct metric *m, const struct sandbox *b);
void shape_error(struct json *j, int code, const char *message);

/* A pausing one counts as paused: it can be resumed, and nothing else. */
bool shape_is_paused(const struct sandbox *b);
/* Processors and sizes as E2B counts them: whole, and never 0. */
uint32_t shape_cpus(const struct sg_limits *l);
uint64_t shape_mib(uint64_t bytes);
