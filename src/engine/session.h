/* The host's side of the channel of one sandbox, for callers that wait. A call is one stream. */
#pragma once

#include <poll.h>

#include "lib/channel/chan.h"
#include "warden/providers/process/process.h"

struct session;

/* One operation under way. Its owner embeds it and may set the callbacks; the stream is valid until
 * `ended`. */
struct call {
    struct chan_stream *stream;
    bool ended;
    int status; /* positive errno when the agent refused or failed */
    char message[256];
    struct strbuf result; /* the END payload after the message */
    void (*on_data)(struct call *c, uint8_t sub, const void *p, size_t len);
    void (*on_event)(struct call *c, uint8_t what, const void *p, size_t len);
    void (*on_credit)(struct call *c);
    bool owes; /* on_data sees to chan_consumed itself, now or later */
};

struct session *session_new(int channel_fd);
void session_free(struct session *s); /* calls under way are forgotten */
struct chan *session_chan(struct session *s);

int session_call_begin(struct session *s, struct call *c, enum chan_op op,
                       const struct strbuf *request, struct sg_error *e);
void session_call_done(struct call *c);
/* The agent's refusal as an error, or 0. */
int session_call_error(const struct call *c, struct sg_error *e);

/* Waits for one thing to happen on the channel or on the n other descriptors (whose revents are
 * set), or for the deadline (0: none). Returns 0, or -EPIPE and such when the sandbox is gone. */
int session_step(struct session *s, struct pollfd *others, size_t n, uint64_t deadline_ns,
                 struct sg_error *e);
/* Until the call has ended. */
int session_wait(struct session *s, struct call *c, uint64_t deadline_ns, struct sg_error *e);

/* files.c. The write is begun only: data up to CHAN_WINDOW goes out at once, more as the agent
 * takes it. */
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
