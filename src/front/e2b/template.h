/* Everything that a sandbox can start from: the templates that come with the server, and the
 * tenant's own snapshots. */
#pragma once

#include "front/e2b/ref.h"
#include "front/e2b/request.h"

#define TEMPLATE_INTERPRETER "code-interpreter-v1"

struct template_found {
    char id[ID_LEN + 1];
    char alias[STORE_NAME_MAX + 1]; /* "" if the template has none */
    char base[STORE_NAME_MAX + 1];  /* the built-in template that it was made from */
    char snapshot[ID_LEN + 1];      /* "" for a built-in template */
    int64_t created_ms;
};

/* -ENOENT, with E2B's message, also for another tenant's template. */
int template_find(struct store *s, const struct store_tenant *tenant,
                  const struct template_ref *ref, struct template_found *ret, struct sg_error *e);
/* Whether a template of this name comes with the server. */
bool template_is_builtin(const char *name);

/* Routes. */
void templates_list(struct http_req *req);
void template_get(struct http_req *req);
void template_alias(struct http_req *req);
void template_tags(struct http_req *req);
void template_delete(struct http_req *req);
