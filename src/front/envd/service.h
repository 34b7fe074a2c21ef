/* What the two RPC services share: who asks, for which path, and a call that is one operation of
 * the agent. */
#pragma once

#include "lib/channel/wire.h"
#include "front/envd/envd.h"
#include "front/core/call.h"
#include "lib/rpc/rpc.h"

extern const struct rpc_service process_service, filesystem_service;

/* The sandbox of a call. */
static inline struct sandbox *sandbox_of(const struct rpc_call *c)
{
    return c->context;
}

/* The user that "Authorization: Basic" names, or the default one. False: the call has failed. */
bool service_user(struct rpc_call *c, char ret[OPS_NAME_MAX + 1]);
/* envd_path; false: the call has failed. */
bool service_path(struct rpc_call *c, const char *user, const char *given, char ret[OPS_PATH_MAX]);

/* Fails the call as an operation that ended with this status (call.h), which is not 0, deserves. */
void service_fail(struct rpc_call *c, const char *user, int status, const char *message);
enum rpc_code service_code(int status);
/* The sandbox is gone: 502, or, if something was sent already, the connection is dropped. */
void service_gone(struct rpc_call *c);
/* The agent said what no agent says. */
void service_nonsense(struct rpc_call *c);

/* A call that is one operation of the agent. It lives until the call is over; `release` (may be
 * NULL) frees what the embedding struct has besides. */
struct task {
    struct call call;
    struct rpc_call *rpc;
    char user[OPS_NAME_MAX + 1];
    char *path; /* of what it is about; may be NULL */
    void (*release)(struct task *t);
    /* The operation has succeeded. */
    void (*done)(struct task *t, const void *result, size_t len);
    /* It has failed, and the sandbox is there; NULL: service_fail. */
    void (*failed)(struct task *t, int status, const char *message);
};

/* `size` is that of the embedding struct, which starts with the task. */
void *task_new(struct rpc_call *c, size_t size);
/* The call's user and the path that `given` means go into the task and the request. False: the call
 * has failed, and the task is gone with it. */
bool task_target(struct task *t, const char *given, struct strbuf *request);
/* call.on_event, on_data and on_credit are the caller's to set before. False: as above. */
bool task_begin(struct task *t, enum chan_op op, const struct strbuf *request);
