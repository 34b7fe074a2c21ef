/* The handlers below /v1, for the table in routes.c. */
#pragma once

#include "lib/http/http.h"

/* contexts.c */
void v1_context_put(struct http_req *req);
void v1_context_get(struct http_req *req);
void v1_context_end(struct http_req *req);
void v1_context_touch(struct http_req *req);

/* list.c */
void v1_contexts_list(struct http_req *req);

/* branch.c */
void v1_branch(struct http_req *req);
void v1_merge(struct http_req *req);
void v1_cleanup(struct http_req *req);
void v1_paths(struct http_req *req);

/* checkpoints.c */
void v1_checkpoints(struct http_req *req);
void v1_rewind(struct http_req *req);

/* explore.c */
void v1_explore(struct http_req *req);
void v1_adopt(struct http_req *req);

/* usage.c */
void v1_usage(struct http_req *req);

/* diff.c */
void v1_diff(struct http_req *req);

/* events.c */
void v1_events(struct http_req *req);

/* links.c */
void v1_link_post(struct http_req *req);

/* audit.c */
void v1_audit(struct http_req *req);

/* agents.c */
void v1_agent_post(struct http_req *req);
void v1_agents_list(struct http_req *req);
void v1_agent_get(struct http_req *req);
void v1_agent_end(struct http_req *req);
void v1_agent_timeout(struct http_req *req);
void v1_agent_logs(struct http_req *req);
void v1_agent_acp(struct http_req *req);
