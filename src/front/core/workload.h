/* Who a sandbox is for servers outside: its tokens (guard/identity.h), and what those servers need
 * to check them.
 *
 *   create: iam.tokens --> spec.tokens --> policy document --> guard, which signs
 *   GET /.well-known/openid-configuration, /.well-known/jwks.json
 *                      <-- public keys: of our guard, and of the servers that share our database
 *
 * The front has public keys alone. It asks the guard for them now and then, and tells them in the
 * database: whichever server is asked knows the keys of all. */
#pragma once

#include "front/core/front.h"
#include "front/core/spec.h"

#define WORKLOAD_TOKENS       5 /* of a sandbox, as at E2B */
#define WORKLOAD_NAME_MAX     128
#define WORKLOAD_AUDIENCE_MAX 512
#define WORKLOAD_PREFIX       "/.well-known/"

struct dbworker;

/* dbworker: of the database that servers share; NULL: there is none. */
void workload_start(struct front *f, struct dbworker *dbworker);
/* Answers one of the two addresses above, without a key. */
void workload_request(struct http_req *req);
/* The address that tokens name as their issuer; "": the server does not know its own. */
const char *workload_issuer(const struct front *f);
/* The document's "identity", or NULL: the sandbox has no tokens. */
json_t *workload_document(struct front *f, const char *id, const struct sandbox_spec *s);
