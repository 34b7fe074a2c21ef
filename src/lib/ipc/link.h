/* A link: one end of a SOCK_SEQPACKET socket between two of our processes, in an event loop. It
 * knows no loop. Who owns it tells it when the socket is ready, and hears from `changed` what to
 * wait for (lib/uv/ipc_uv.h does both for libuv).
 *
 *   messages out   sent at once or, if the socket is full, kept in order until it has room
 *   calls          (calls.h) messages that are answered. The link numbers them (seq), keeps for each whom to
 *                  tell, and tells exactly once: with the answer, with -ETIMEDOUT, or with -EPIPE
 *                  when the link is closed
 *   messages in    checked (size, magic), a few for each turn of the loop, so that others get their
 *                  turn. The answer to a call goes to `answer`, everything else to `take`
 *
 * All messages begin with a magic number and, where there are calls, with a struct ipc_head. A
 * message that is sent at once and a call need no memory of their own. */
#pragma once

#include "lib/base/list.h"
#include "lib/ipc/ipc.h"

struct ipc_link;
struct ipc_call;

/* A message that has come in, or why there is none. */
struct ipc_in {
    struct ipc_link *link;
    int r;   /* 0, or of a call that has no answer -ETIMEDOUT or -EPIPE */
    void *m; /* a NUL follows it; NULL if r < 0 */
    size_t len;
    struct ipc_fds fds; /* those that are not taken out are closed */
};

/* A number that is 0 is no limit. */
struct ipc_kind {
    uint32_t magic;
    size_t min, max;   /* bytes of a message that comes in; min 0: the same as max */
    size_t fds_max;    /* descriptors that come with one */
    bool no_queue;     /* a message that finds no room is refused: -EAGAIN */
    size_t unsent_max; /* messages that wait for room; further ones are refused */
    /* Nothing is read while this many messages wait for room. So a peer that sends and does not
     * read cannot make us keep more than this many answers. */
    size_t read_below;
    unsigned turn;      /* messages read in one turn of the loop; 0: 64 */
    uint32_t calls_max; /* further ones are refused: -EAGAIN */
    uint64_t wait_ns;   /* for an answer */
    /* A message that answers no call. An error: the peer is not to be trusted, and `gone` is
     * called. NULL: any such message is an error. */
    int (*take)(struct ipc_in *in);
    int (*answer)(const struct ipc_call *c, struct ipc_in *in); /* the same for an answer */
    /* The peer has ended (-EPIPE), or sends what it must not. The link is closed afterwards. */
    void (*gone)(struct ipc_link *l, int r);
};

/* The operations of a link that makes calls. */
struct ipc_calling {
    struct ipc_call *(*find)(const struct ipc_link *l, uint64_t seq);
    int (*settle)(struct ipc_call *c, struct ipc_in *in);
    void (*give_up)(struct ipc_link *l, uint64_t due_ns, int r);
};

struct ipc_link {
    const struct ipc_kind *kind;
    void (*changed)(struct ipc_link *l); /* ipc_link_events or ipc_link_due may be other now */
    int sock;                            /* -1: closed */
    uint64_t opened;                     /* how often */
    struct list unsent;
    size_t n_unsent;
    const struct ipc_calling *calling; /* of calls.c; NULL: there never was a call */
    struct ipc_call *calls;            /* the lower part of seq is the place here */
    uint32_t n_calls, n_open;
    uint64_t n_called;
    void *buf; /* one message that came in */
};

/* A message to send: two parts, of which the first has the magic and seq, and descriptors, which
 * stay the caller's. */
struct ipc_out {
    void *head;
    size_t len;
    const void *more;
    size_t more_len;
    const int *fds;
    size_t n_fds;
};

void ipc_link_init(struct ipc_link *l, const struct ipc_kind *kind,
                   void (*changed)(struct ipc_link *l));
/* Takes over the socket. Closes the one before. */
void ipc_link_open(struct ipc_link *l, int sock);
/* Closes the socket, if there is one, drops what waits for room, and answers all calls. */
void ipc_link_close(struct ipc_link *l);

/* 0: sent, or waiting for room. -EAGAIN: too many wait. -EPIPE: there is no peer. Other errors are
 * the socket's; a peer that has ended is noticed by reading, too. Fills in the magic. */
int ipc_link_send(struct ipc_link *l, const struct ipc_out *out);

/* For calls.c: the message belongs to the call with this seq. */
int ipc_link_put(struct ipc_link *l, const struct ipc_out *out, uint64_t call);
static inline bool ipc_below(size_t n, size_t limit)
{
    return limit == 0 || n < limit;
}

/* ---- for the loop ---------------------------------------------------------------------------- */

/* POLLIN and POLLOUT, as far as they are to be waited for; 0 if the link is closed. */
int ipc_link_events(const struct ipc_link *l);
/* The socket is ready: sends what waits, and takes messages. It may be called at any time. */
void ipc_link_ready(struct ipc_link *l);
/* Takes one message. False: there is none, or the peer is gone. */
bool ipc_link_take(struct ipc_link *l);
