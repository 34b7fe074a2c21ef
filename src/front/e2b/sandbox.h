/* The routes of one sandbox. */
#pragma once

#include "front/e2b/request.h"

/* sandbox.c */
void sandbox_create_v1(struct http_req *req);
void sandbox_create_v2(struct http_req *req);
void e2b_sandbox_get(struct http_req *req);
void e2b_sandbox_kill(struct http_req *req);
void sandbox_network(struct http_req *req);
/* Answers with the sandbox, as create and connect do. */
void sandbox_reply(struct e2b_req *q, int status, const struct sandbox *b);

/* lifecycle.c */
/* Checks that the sandbox runs, for routes that need it to. False: answered. */
bool sandbox_is_running(struct e2b_req *q, const struct sandbox *b);
void sandbox_timeout(struct http_req *req);
void sandbox_refresh(struct http_req *req);
void e2b_sandbox_pause(struct http_req *req);
void e2b_sandbox_resume(struct http_req *req);
void sandbox_connect_v1(struct http_req *req);
void sandbox_connect_v2(struct http_req *req);

/* snapshot.c, fork.c */
void snapshot_create(struct http_req *req);
void snapshot_list(struct http_req *req);
void sandbox_fork(struct http_req *req);

/* list.c, metrics.c, logs.c */
void sandboxes_list_v1(struct http_req *req);
void sandboxes_list_v2(struct http_req *req);
void e2b_sandbox_metrics(struct http_req *req);
void sandboxes_metrics(struct http_req *req);
void sandbox_logs_v1(struct http_req *req);
void sandbox_logs_v2(struct http_req *req);
