/* From what a client asks for to a sandbox that can be made: its body checked (spec.h), its
 * template found. Whoever makes sandboxes uses this: E2B's create, contexts, tools. */
#pragma once

#include "front/e2b/spec.h"
#include "front/store/store.h"

struct create_plan {
    struct sandbox_spec spec;  /* the caller's to give away or free */
    char snapshot[ID_LEN + 1]; /* "": none */
    uint64_t timeout_ms;
};

/* body: as E2B's create has it. template_name: instead of the one that the body names; NULL: that
 * one, or the setting's. */
int create_plan(struct store *store, const struct settings *settings,
                const struct store_tenant *tenant, const json_t *body, enum spec_version version,
                const char *template_name, struct create_plan *ret, struct sg_error *e);
