/* Turns a create request into a sandbox's specification. Nothing is looked up here: the template is
 * only a name. */
#pragma once

#include "front/core/spec.h"
#include "front/e2b/field.h"
#include "lib/settings/settings.h"

/* SPEC_OWN is for our own API (contexts, tools): like V2, but outgoing traffic may reach only what
 * `network` allows, and its denyOut may have names. */
enum spec_version { SPEC_V1, SPEC_V2, SPEC_OWN };

#define SPEC_TIMEOUT_V1_S 15
#define SPEC_TIMEOUT_V2_S 300

struct create_request {
    struct sandbox_spec spec;  /* without tenant, template and alias */
    const char *template_name; /* lives as long as the body */
    uint64_t timeout_ms;
};

/* SG_ERR_INVALID. On success the caller gives the spec away or frees it. */
int create_request_parse(const json_t *body, enum spec_version version,
                         const struct settings *settings, struct create_request *ret,
                         struct sg_error *e);
/* Reads environment variables, if the body has them: an object of strings, with names that are
 * valid in an environment. */
json_t *spec_read_envs(struct fields *in, const char *field);
/* The specification of a second sandbox of the same kind: a copy of all of it, but with tokens of
 * its own, and without a context. */
void spec_copy(const struct sandbox_spec *from, struct sandbox_spec *ret);
