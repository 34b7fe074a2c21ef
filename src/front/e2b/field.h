/* The fields of a request's body (lib/json/fields.h), with E2B's words for what is wrong. */
#pragma once

#include "lib/json/fields.h"

#define FIELD_ERROR "Error when parsing request: "

static inline struct fields request_fields(const json_t *body, struct sg_error *e)
{
    return (struct fields){.object = body, .prefix = FIELD_ERROR, .e = e};
}

/* The lifetime of a sandbox in milliseconds, from the field `timeout`, which has seconds: at least
 * min_s (0 or 1) and at most max_ms; default_s if it is absent. */
uint64_t field_timeout(struct fields *in, int32_t min_s, uint32_t default_s, uint64_t max_ms);
