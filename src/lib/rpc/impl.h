/* Shared by rpc.c and answer.c. */
#pragma once

#include "lib/rpc/rpc.h"

/* Writes more of a large answer. */
void rpc_answer_pump(struct rpc_call *c);
/* Answers a unary call with an error. */
void rpc_answer_error(struct http_req *req, int status, enum rpc_code code, const char *message);
void rpc_budget_release(struct rpc_call *c);
