/* The objects of answers: a context as docs/openapi.yaml has it. */
#pragma once

#include "lib/text/json.h"
#include "front/contexts/context.h"

void shape_context(struct json *j, const struct ctx_row *row); /* NULL: null */
void shape_usage(struct json *j, const struct ctx_usage *u);   /* the fields, without braces */
void shape_path(struct json *j, const struct ctx_path *p);
/* `context`, `sandbox` and `wasCreated`, of whoever made or found one. */
void shape_obtained(struct json *j, const struct context_answer *a);

void shape_text_key(struct json *j, const char *key, const char *value);
void shape_nullable_key(struct json *j, const char *key, const char *value); /* "" is null */
