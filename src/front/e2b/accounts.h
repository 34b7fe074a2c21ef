/* E2B's routes for teams, their keys and access tokens. A team is a tenant. Nobody logs in here: what
 * E2B allows a user who has logged in, the operator's token allows (front/core/auth.h), with the
 * tenant in X-Team-ID. Team and key ids are those of `sandglass tenant list` and `key list`. */
#pragma once

#include "front/e2b/request.h"

void teams_list(struct http_req *req);
void team_metrics(struct http_req *req);
void team_metrics_max(struct http_req *req);

void keys_list(struct http_req *req);
void key_create(struct http_req *req);
void key_rename(struct http_req *req);
void key_delete(struct http_req *req);
/* What follows once q->tenant is the team. */
void keys_list_of(struct e2b_req *q);
void key_create_for(struct e2b_req *q);
void key_end(struct e2b_req *q, const char *id);

void access_token_create(struct http_req *req);
void access_token_delete(struct http_req *req);
