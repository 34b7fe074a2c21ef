/* Calls of the Connect protocol over HTTP/1.1: unary, server streams, client streams; JSON and
 * protobuf. A method is a row in a table, its handler sees canonical objects (message.h) only.
 *
 * Life of a call:
 *
 *   rpc_serve --> head and body checked --> handle(call, message) --> answer --> on_close
 *                                                ^      |               ^
 *                        client stream: one each '      `-- rpc_send ---'   server stream
 *
 * The handler answers now or later, with exactly one of rpc_reply, rpc_finish, rpc_fail. on_close
 * is called exactly once and as the last thing: from inside those three, when the client is gone,
 * or when the call's time is over. The handler frees there what it keeps for the call, and does not
 * touch the call afterwards.
 *
 * An error of a unary call is a status and a JSON body; that of a stream is 200 and a frame at its
 * end, because that is where clients look. Nothing is compressed. Bodies are limited to
 * RPC_REQUEST_MAX, and a message's length is checked before it is waited for. */
#pragma once

#include "lib/http/http.h"
#include "lib/rpc/code.h"
#include "lib/rpc/envelope.h"
#include "lib/rpc/message.h"

#define RPC_REQUEST_MAX (4u * 1024 * 1024)
#define RPC_REPLY_MAX   (16u * 1024 * 1024)
/* Bytes of all answers that are larger than RPC_SMALL and wait for their clients, together. */
#define RPC_BUDGET (256u * 1024 * 1024)
#define RPC_SMALL  (64u * 1024)

enum rpc_kind { RPC_UNARY, RPC_SERVER_STREAM, RPC_CLIENT_STREAM };

struct rpc_call;

struct rpc_method {
    const char *name;
    enum rpc_kind kind;
    const struct rpc_message *in, *out;
    /* The message is valid during the call: json_incref keeps it. For a client stream, handle is
     * called for each message, and with NULL when there are no more. */
    void (*handle)(struct rpc_call *c, json_t *message);
};

struct rpc_service {
    const char *prefix; /* "/process.Process/" */
    const struct rpc_method *methods;
    size_t n;
    /* Called when a call is over, with the context that rpc_serve got. */
    void (*release)(void *context);
};

struct rpc_call {
    struct http_req *req;
    const struct rpc_service *service;
    const struct rpc_method *method;
    uv_loop_t *loop;
    void *context;
    enum rpc_codec codec;
    uint64_t timeout_ms; /* Connect-Timeout-Ms; 0: none */

    /* The handler's fields. */
    void *owner;
    void (*on_close)(struct rpc_call *c);
    void (*on_writable)(struct rpc_call *c); /* rpc_send said false, now it may go on */

    /* The fields of rpc.c and answer.c. */
    bool over;      /* answered, or the client is gone */
    bool streaming; /* request and answer have the form of a stream */
    bool held, draining, input_over, input_told, blocked;
    bool resting; /* messages wait for the next slice */
    struct work work;
    json_t *first; /* the one message of a server stream, until the body has ended */
    struct rpc_envelopes input;
    struct strbuf rest; /* the unsent part of a large answer */
    size_t rest_off;
    size_t budget;
    uv_timer_t timer;
    bool timer_used;
    uint64_t deadline_at, keepalive_at; /* uv_now; 0: none */
    uint64_t keepalive_ms;
    json_t *keepalive;
};

/* Serves a request whose path begins with the service's prefix. Takes over `context`. The service
 * must outlive the call. */
void rpc_serve(const struct rpc_service *s, uv_loop_t *loop, struct http_req *req, void *context);

/* Sends the one answer of a unary call or client stream. Takes over value; NULL is an empty
 * message. */
void rpc_reply(struct rpc_call *c, json_t *value);
/* The same with an encoded message, for lists; takes over the buffer. A truncated buffer fails the
 * call. */
void rpc_reply_encoded(struct rpc_call *c, struct strbuf *body);
/* Sends a message of a server stream at once. Takes over value. False: stop until on_writable. */
bool rpc_send(struct rpc_call *c, json_t *value);
/* Ends a server stream. */
void rpc_finish(struct rpc_call *c);
void rpc_fail(struct rpc_call *c, enum rpc_code code, const char *fmt, ...) PRINTF(3, 4);
/* Lets go of the call without an answer: the caller answers call->req itself. on_close is called as
 * with the others. */
void rpc_abandon(struct rpc_call *c);

/* Server streams: sends `message` (taken over) whenever nothing else was sent for as long as the
 * client wishes (Keepalive-Ping-Interval). Not before the first real message. */
void rpc_set_keepalive(struct rpc_call *c, json_t *message);
/* Gives the handler more time than the client does, so that it can tell of the timeout itself. */
void rpc_extend_deadline(struct rpc_call *c, uint64_t ms);
/* Client streams: no more messages until rpc_resume. */
void rpc_hold(struct rpc_call *c);
void rpc_resume(struct rpc_call *c);
/* Counts memory that an answer takes while it is made. False: all answers together take too much
 * already. */
bool rpc_budget_take(struct rpc_call *c, size_t bytes);
