/* Writes the objects of answers, such as a context, as docs/openapi.yaml has them. */
#pragma once

#include "lib/text/json.h"
#include "front/contexts/context.h"

void shape_context(struct json *j, const struct ctx_row *row); /* NULL: null */
void shape_usage(struct json *j, const struct ctx_usage *u);   /* the fields, without braces */
void shape_path(struct json *j, const struct ctx_path *p);
/* Writes `context`, `sandbox` and `wasCreated`, for routes that make or find a sandbox. */
void shape_obtained(struct json *j, const struct context_answer *a);

void shape_text_key(struct json *j, const char *key, const char *value);
void shape_nullable_time_key(struct json *j, const char *key, int64_t ms);   /* 0 is null */
void shape_nullable_key(struct json *j, const char *key, const char *value); /* "" is null */
