/* Checks requests before anything is begun for them. An error names the field. The first error
 * is kept in q->in, and e2b_read answers with it. */
#pragma once

#include "front/contexts/context.h"
#include "front/e2b/request.h"

/* The body must have these fields only, and `tenantId`, which, if present, must be the tenant of the
 * key: -EACCES otherwise. */
#define check_body(q, ...) check_known(q, (const char *const[]){"tenantId", __VA_ARGS__, NULL})
void check_known(struct e2b_req *q, const char *const *names);
/* The same check for `tenantId` in a query. */
int check_query_tenant(struct http_req *req, const struct store_tenant *tenant, struct sg_error *e);

/* The id of a conversation or a path. If it is absent: an error if it is required, otherwise
 * NULL. */
const char *check_name(struct e2b_req *q, const char *field, bool required);
const char *check_query_name(struct e2b_req *q, const char *field, bool required);
/* A field of the query. NULL: it is absent; "": no text, since it has a NUL in it. */
const char *check_query(const struct e2b_req *q, const char *field);
/* `sandboxId` in a query; NULL if it is absent. */
const char *check_query_sandbox(struct e2b_req *q);
uint64_t check_query_number(struct e2b_req *q, const char *field, uint64_t min, uint64_t max,
                            uint64_t fallback);
/* `ttlSeconds` in milliseconds: 0 if it is absent. */
uint64_t check_ttl(struct e2b_req *q);
/* Reads which context is meant, and how its sandbox is to be if one must be made. path_field: the
 * field that names the path. */
struct context_ask check_ask(struct e2b_req *q, const char *path_field);
/* The id of a checkpoint; NULL if it is absent. */
const char *check_checkpoint(struct e2b_req *q);
/* Two different paths of a conversation. */
struct check_two {
    const char *conversation, *one, *other;
};
struct check_two check_two_paths(struct e2b_req *q, const char *one_field, const char *other_field);
/* Copies the context id in the request's URL to q->id. False: the request has been answered with
 * 404. */
bool check_id(struct e2b_req *q);
