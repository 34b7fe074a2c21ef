/* Code that the two RPC services share: the user and the path of a call, its errors, and calls that
 * are one operation of the agent. */
#pragma once

#include "lib/channel/wire.h"
#include "front/envd/envd.h"
#include "front/core/call.h"
#include "lib/rpc/rpc.h"

extern const struct rpc_service process_service, filesystem_service;

/* Gives up the sandbox of a call, for struct rpc_service. */
void service_release(void *sandbox);
/* The sandbox of a call. */
static inline struct sandbox *sandbox_of(const struct rpc_call *c)
{
    return c->context;
}

/* The user that "Authorization: Basic" names, or the default one. False: the call has failed. */
bool service_user(struct rpc_call *c, char ret[OPS_NAME_MAX + 1]);
/* envd_path. False: the call has failed. */
bool service_path(struct rpc_call *c, const char *user, const char *given, char ret[OPS_PATH_MAX]);

/* Fails the call with the error for an operation's status (front/core/call.h), which is not 0. */
void service_fail(struct rpc_call *c, const char *user, int status, const char *message);
enum rpc_code service_code(int status);
/* The sandbox is gone: answers 502, or drops the connection if an answer has begun. */
void service_gone(struct rpc_call *c);
/* The agent has sent bytes that make no sense. */
void service_nonsense(struct rpc_call *c);

/* A call that is one operation of the agent. The task lives until the call is over; `release` (may
 * be NULL) frees the further members of the embedding struct. */
struct task {
    struct call call;
    struct rpc_call *rpc;
    char user[OPS_NAME_MAX + 1];
    char *path; /* the path that the operation is about; may be NULL */
    void (*release)(struct task *t);
    /* The operation has succeeded. */
    void (*done)(struct task *t, const void *result, size_t len);
    /* The operation has failed, and the sandbox still exists. NULL: service_fail. */
    void (*failed)(struct task *t, int status, const char *message);
};

/* `size` is the size of the embedding struct, which starts with the task. */
void *task_new(struct rpc_call *c, size_t size);
/* Puts the call's user, and the path that `given` means, into the task and the request. False: the
 * call has failed and the task is freed. */
bool task_target(struct task *t, const char *given, struct strbuf *request);
/* A `done` that answers with the empty message. */
void task_reply_empty(struct task *t, const void *result, size_t len);
/* The caller sets call.on_event, on_data and on_credit first. False: as for task_target. */
bool task_begin(struct task *t, enum chan_op op, const struct strbuf *request);
