/* Finds out who asks: checks the API keys of the control plane. Every request is checked by itself;
 * a connection is never trusted for a key that it sent before. */
#pragma once

#include "front/core/front.h"
#include "front/store/store.h"

/* Returns the tenant whose key came with the request. Without a valid key the function answers 401
 * itself and returns NULL. The pointer is valid until the next call. */
const struct store_tenant *auth_tenant(struct http_req *req);

/* The same for the operator's token (X-Admin-Token), which is no tenant's: of the result only the
 * address counts. */
const struct store_tenant *auth_operator(struct http_req *req);
/* The operator's token together with the tenant that it is about (X-Team-ID). */
const struct store_tenant *auth_operator_for(struct http_req *req);
/* A tenant's key, or auth_operator_for. */
const struct store_tenant *auth_team(struct http_req *req);
/* A tenant's access token as a bearer, or the operator's token: then the tenant is empty. */
const struct store_tenant *auth_account(struct http_req *req);

/* For tokens that are no keys. Whether the client may try one: not after too many wrong ones. False:
 * answered. */
bool auth_may_try(struct http_req *req);
/* Answers 401, and counts that. */
void auth_refuse(struct http_req *req, const char *message);
/* The token was right: whether the tenant may ask for more. False: answered. */
bool auth_admit(struct http_req *req, const char *tenant);
