/* Finds out who asks: checks the API keys of the control plane. Every request is checked by itself;
 * a connection is never trusted for a key that it sent before. */
#pragma once

#include "front/core/front.h"
#include "front/store/store.h"

/* Returns the tenant whose key came with the request. Without a valid key the function answers 401
 * itself and returns NULL. The pointer is valid until the next call. */
const struct store_tenant *auth_tenant(struct http_req *req);

/* For tokens that are no keys. Whether the client may try one: not after too many wrong ones. False:
 * answered. */
bool auth_may_try(struct http_req *req);
/* Answers 401, and counts that. */
void auth_refuse(struct http_req *req, const char *message);
/* The token was right: whether the tenant may ask for more. False: answered. */
bool auth_admit(struct http_req *req, const char *tenant);
