/* Checks requests before anything is begun for them. An error names the field. */
#pragma once

#include "front/contexts/context.h"
#include "front/e2b/request.h"

/* The body must have these fields only, and `tenantId`, if present, must be the tenant of the key:
 * -EACCES otherwise. */
int check_body(const struct e2b_req *q, const char *const *names, size_t n, struct sg_error *e);
/* The same check for `tenantId` in a query. */
int check_query_tenant(struct http_req *req, const struct store_tenant *tenant, struct sg_error *e);

/* The id of a conversation or a path. If it is absent: an error if it is required, otherwise
 * NULL. */
int check_name(const json_t *body, const char *field, bool required, const char **ret,
               struct sg_error *e);
int check_query_name(struct http_req *req, const char *field, bool required, const char **ret,
                     struct sg_error *e);
/* `ttlSeconds`: 0 if it is absent. */
int check_ttl(const struct e2b_req *q, uint64_t *ret_ms, struct sg_error *e);
/* Reads which context is meant, and how its sandbox is to be if one must be made. path_field: the
 * field that names the path. */
int check_ask(struct e2b_req *q, const char *path_field, struct context_ask *ret,
              struct sg_error *e);
/* `waitMs`: 0 if it is absent. */
int check_wait(const struct e2b_req *q, uint64_t *ret_ms, struct sg_error *e);
/* The id of a checkpoint; NULL if it is absent. */
int check_checkpoint(const struct e2b_req *q, const char **ret, struct sg_error *e);
/* Two different paths of a conversation. */
struct check_two {
    const char *conversation, *one, *other;
};
int check_two_paths(const struct e2b_req *q, const char *one_field, const char *other_field,
                    struct check_two *ret, struct sg_error *e);
/* Copies the context id in the request's URL to q->id. False: the request has been answered with
 * 404. */
bool check_id(struct e2b_req *q);
