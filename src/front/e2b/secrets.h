/* The routes of secrets. A value that comes in is sealed with the guard's public key, and never
 * comes out again: this program cannot read what it stores. Until a value is sealed, it is in
 * locked memory (lib/vault/vault.h); all other copies are wiped. */
#pragma once

#include "lib/http/http.h"

void secrets_list(struct http_req *req);
void secret_create(struct http_req *req);
void secret_get(struct http_req *req);
void secret_update(struct http_req *req);
void secret_delete(struct http_req *req);
