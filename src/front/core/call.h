/* A call: one operation of a sandbox's agent (wire/agent.h), with callbacks. Everything that an
 * agent sends is hostile input: the owner of the call checks lengths, strings and the order of
 * messages.
 *
 * The owner embeds struct call. on_end is called exactly once, as the last callback, unless
 * call_cancel was called first: then no callback follows, and the struct may be freed at once. */
#pragma once

#include "front/core/sandbox.h"

/* The status of a call whose sandbox was paused or ended before the call was over. */
#define CALL_GONE (-1)

struct call {
    struct sandbox *sandbox;
    struct chan_stream *stream;
    void *owner;
    bool uncounted; /* the server calls for itself: does not count as use (usage.h) */
    bool lasting;   /* runs on without a client: that alone does not count as use */
    void (*on_event)(struct call *c, uint8_t what, const void *p, size_t len);
    /* The owner must return credit for these bytes with call_consumed, now or later. */
    void (*on_data)(struct call *c, uint8_t sub, const void *p, size_t len);
    void (*on_credit)(struct call *c);
    const char *pouring; /* private to link.c: what call_pour has not sent yet */
    size_t pouring_len;
    /* status: 0, a positive errno, or CALL_GONE. result is set if status is 0; wire/agent.h says
     * what it holds for each operation. */
    void (*on_end)(struct call *c, int status, const char *message, const void *result, size_t len);
    struct link *via; /* private to link.c, with the fields below */
    struct list in_link;
};

/* Starts a call. Every callback that the operation can cause must be set. Returns -EPIPE if the
 * sandbox does not run, -EAGAIN if too many calls are under way, -E2BIG if the request is too
 * large. The sandbox must outlive the call: take a reference. */
int call_begin(struct call *c, struct sandbox *b, enum chan_op op, const struct strbuf *request,
               struct sg_error *e);
/* Cancels a call: no callback follows. Harmless if the call has ended or never began. */
void call_cancel(struct call *c);
size_t call_credit(const struct call *c);
void call_send(struct call *c, uint8_t sub, const void *p, size_t len);
void call_eof(struct call *c);
/* Sends all these bytes, as the agent gives credit for them, and then the end. They must stay until
 * the call is over, or until on_credit: it is called once they are sent, if it is set. */
void call_pour(struct call *c, const void *p, size_t len);
/* Begins OP_FILE_WRITE and pours the file. mode: e.g. 0644. */
int call_write_file(struct call *c, struct sandbox *b, const char *user, const char *path,
                    uint32_t mode, const void *p, size_t len, struct sg_error *e);
void call_control(struct call *c, enum chan_control what, const void *p, size_t len);
void call_consumed(struct call *c, size_t len);
/* Frames that calls send between sandbox_cork and sandbox_uncork leave in one write. */
void sandbox_cork(struct sandbox *b);
void sandbox_uncork(struct sandbox *b);

/* link.c, for lifecycle.c: the link is the front's end of the channel to an agent. */
struct link *link_new(struct sandbox *b, int channel_fd);
void link_free(struct link *l);       /* ends every call with CALL_GONE */
void link_drop_calls(struct link *l); /* the same, but keeps the channel: for a pause */
