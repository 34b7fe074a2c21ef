/* The host's end of the channel of one sandbox, for callers that block. Each call is one stream. */
#pragma once

#include <poll.h>

#include "lib/channel/chan.h"
#include "warden/providers/provider.h"

/* One call under way. Its owner embeds it and may set the callbacks. The stream is valid until
 * `ended`. */
struct call {
    struct chan_stream *stream;
    bool ended;
    int status; /* positive errno if the agent refused or failed */
    char message[256];
    struct strbuf result; /* what follows the message in the END frame */
    void (*on_data)(struct call *c, uint8_t sub, const void *p, size_t len);
    void (*on_credit)(struct call *c);
    bool owes; /* on_data calls chan_consumed itself, at once or later */
};

/* The channel behind this descriptor, for the functions below. */
struct chan *session_open(int channel_fd);

int session_call_begin(struct chan *chan, struct call *c, enum chan_op op,
                       const struct strbuf *request, struct sg_error *e);
void session_call_done(struct call *c);
/* Turns the agent's refusal into an error. Returns 0 if there was none. */
int session_call_error(const struct call *c, struct sg_error *e);
/* Sends as much of the data as the agent takes now, from *sent on. True if nothing is left. */
bool session_call_send(struct chan *chan, struct call *c, const char *data, size_t len,
                       size_t *sent);

/* Waits until something happens on the channel or on one of the n other descriptors (and sets their
 * revents), or until the deadline (0: none). Returns 0, or -EPIPE and the like if the sandbox is
 * gone. */
int session_step(struct chan *chan, struct pollfd *others, size_t n, uint64_t deadline_ns,
                 struct sg_error *e);
/* Waits until the call has ended. */
int session_wait(struct chan *chan, struct call *c, uint64_t deadline_ns, struct sg_error *e);

/* files.c. file_write_begin only begins the write: it sends up to CHAN_WINDOW bytes at once, and
 * the rest as the agent takes it. */
struct file_write {
    struct call call;
    struct chan *chan;
    const char *data;
    size_t len, sent;
};
int file_write_begin(struct chan *chan, struct file_write *w, const char *user, const char *path,
                     unsigned mode, const void *data, size_t len, struct sg_error *e);
/* Reads as much of a file as fits into `ret`; *ret is truncated if that is not all. */
int file_read_into(struct chan *chan, const char *user, const char *path, uint64_t timeout_ms,
                   struct strbuf *ret, struct sg_error *e);
int file_read_whole(struct chan *chan, const char *user, const char *path, size_t max, char **ret,
                    size_t *ret_len, struct sg_error *e);
