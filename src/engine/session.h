/* The host's end of the channel of one sandbox, for callers that block. Each call is one stream. */
#pragma once

#include <poll.h>

#include "lib/channel/chan.h"
#include "warden/providers/provider.h"

struct session;

/* One call under way. Its owner embeds it and may set the callbacks. The stream is valid until
 * `ended`. */
struct call {
    struct chan_stream *stream;
    bool ended;
    int status; /* positive errno if the agent refused or failed */
    char message[256];
    struct strbuf result; /* what follows the message in the END frame */
    void (*on_data)(struct call *c, uint8_t sub, const void *p, size_t len);
    void (*on_event)(struct call *c, uint8_t what, const void *p, size_t len);
    void (*on_credit)(struct call *c);
    bool owes; /* on_data calls chan_consumed itself, at once or later */
};

struct session *session_new(int channel_fd);
void session_free(struct session *s); /* forgets the calls that are under way */
struct chan *session_chan(struct session *s);

int session_call_begin(struct session *s, struct call *c, enum chan_op op,
                       const struct strbuf *request, struct sg_error *e);
void session_call_done(struct call *c);
/* Turns the agent's refusal into an error. Returns 0 if there was none. */
int session_call_error(const struct call *c, struct sg_error *e);

/* Waits until something happens on the channel or on one of the n other descriptors (and sets their
 * revents), or until the deadline (0: none). Returns 0, or -EPIPE and the like if the sandbox is
 * gone. */
int session_step(struct session *s, struct pollfd *others, size_t n, uint64_t deadline_ns,
                 struct sg_error *e);
/* Waits until the call has ended. */
int session_wait(struct session *s, struct call *c, uint64_t deadline_ns, struct sg_error *e);

/* files.c. file_write_begin only begins the write: it sends up to CHAN_WINDOW bytes at once, and
 * the rest as the agent takes it. */
struct file_write {
    struct call call;
    struct session *session;
    const char *data;
    size_t len, sent;
};
int file_write_begin(struct session *s, struct file_write *w, const char *user, const char *path,
                     unsigned mode, const void *data, size_t len, struct sg_error *e);
int file_read_whole(struct session *s, const char *user, const char *path, size_t max, char **ret,
                    size_t *ret_len, struct sg_error *e);
