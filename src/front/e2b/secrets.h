/* The routes of secrets. A value comes in, is sealed with the guard's public key, and never comes
 * out again: what is stored this program cannot read. Until it is sealed it is in memory that is
 * locked (lib/vault/vault.h); all other copies are wiped. */
#pragma once

#include "lib/http/http.h"

void secrets_list(struct http_req *req);
void secret_create(struct http_req *req);
void secret_get(struct http_req *req);
void secret_update(struct http_req *req);
void secret_delete(struct http_req *req);
