/* E2B's routes for whoever runs the server: they take the operator's token (X-Admin-Token) alone.
 * admin.c has what is done to a team, nodes.c this server. */
#pragma once

#include "lib/http/http.h"

void admin_running_counts(struct http_req *req);
void admin_kill_all(struct http_req *req);
void admin_cancel_builds(struct http_req *req);
void admin_keys_list(struct http_req *req);
void admin_key_create(struct http_req *req);
void admin_key_delete(struct http_req *req);

void nodes_list(struct http_req *req);
void node_get(struct http_req *req);
void node_change(struct http_req *req);
