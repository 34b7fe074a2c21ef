/* Lifecycle events and webhooks, as E2B has them. Routes. */
#pragma once

#include "lib/http/http.h"

void e2b_events(struct http_req *req);
void e2b_sandbox_events(struct http_req *req);

void webhooks_list(struct http_req *req);
void webhook_create(struct http_req *req);
void webhook_get(struct http_req *req);
void webhook_update(struct http_req *req);
void webhook_delete(struct http_req *req);
