/* An operation of a sandbox's agent (wire/agent.h), with callbacks. Everything that comes is
 * hostile input: lengths, strings and order are the caller's to check.
 *
 * The caller embeds struct call. on_end comes exactly once, as the last callback, unless
 * call_cancel came first: after that there is none, and the struct may be freed at once. */
#pragma once

#include "front/core/sandbox.h"

/* Status of a call whose sandbox was paused or has ended meanwhile. */
#define CALL_GONE (-1)

struct call {
    struct sandbox *sandbox;
    struct chan_stream *stream;
    void *owner;
    bool uncounted; /* the server's own doing: it is no use of the sandbox (usage.h) */
    bool lasting;   /* it goes on without a client: that it does is no use of the sandbox */
    void (*on_event)(struct call *c, uint8_t what, const void *p, size_t len);
    /* The bytes are owed: call_consumed, now or later. */
    void (*on_data)(struct call *c, uint8_t sub, const void *p, size_t len);
    void (*on_credit)(struct call *c);
    /* status: 0, a positive errno, or CALL_GONE. result: what ops.h says, when 0. */
    void (*on_end)(struct call *c, int status, const char *message, const void *result, size_t len);
    struct link *via; /* this and below: link.c's */
    struct call *next, **link;
};

/* The callbacks that can come must be set. -EPIPE: not running; -EAGAIN: too many at once; -E2BIG.
 * The sandbox must outlive the call: take a reference. */
int call_begin(struct call *c, struct sandbox *b, enum chan_op op, const struct strbuf *request,
               struct sg_error *e);
/* No more callbacks. Harmless after the end, or if the call never began. */
void call_cancel(struct call *c);
size_t call_credit(const struct call *c);
void call_send(struct call *c, uint8_t sub, const void *p, size_t len);
void call_eof(struct call *c);
void call_control(struct call *c, enum chan_control what, const void *p, size_t len);
void call_consumed(struct call *c, size_t len);
/* Frames of several calls between these leave in one write. */
void sandbox_cork(struct sandbox *b);
void sandbox_uncork(struct sandbox *b);

/* link.c, for lifecycle.c: a channel to the agent. */
struct link *link_new(struct sandbox *b, int channel_fd);
void link_free(struct link *l);       /* every call gets CALL_GONE */
void link_drop_calls(struct link *l); /* the same, the channel stays: for a pause */
