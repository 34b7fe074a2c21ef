/* Turns a client's request into a plan from which a sandbox can be made: checks the body (spec.h)
 * and finds the template. All code that makes sandboxes uses this: E2B's create, contexts,
 * tools. */
#pragma once

#include "front/e2b/spec.h"
#include "front/store/store.h"
#include "front/core/front.h"

struct create_plan {
    struct sandbox_spec spec;  /* the caller gives it away or frees it */
    char snapshot[ID_LEN + 1]; /* "": not from a snapshot */
    uint64_t timeout_ms;
};

/* body: of the same form as for E2B's create; NULL: an empty one. template_name: takes the place of
 * the template that the body names; NULL: the body's template or, without one, the setting's. */
int create_plan(struct front *f, const struct store_tenant *tenant, const json_t *body,
                enum spec_version version, const char *template_name, struct create_plan *ret,
                struct sg_error *e);
/* The same without a time, for a context_spec. */
int create_spec(struct front *f, const struct store_tenant *tenant, const json_t *body,
                enum spec_version version, const char *template_name, struct sandbox_spec *ret,
                char snapshot[ID_LEN + 1], struct sg_error *e);
