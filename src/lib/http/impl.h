/* Shared by the files of this directory. Only they and their tests include this.
 *
 *   server.c           accepts connections, and owns the clock
 *   conn.c             moves a connection from state to state; only this file calls the owner back
 *   head.c, chunked.c  read bytes, without I/O
 *   body.c, answer.c   the functions of http.h, which change the request and wake the connection
 *   make.c             makes things of long bodies, on threads
 *   io.c, tls.c        move bytes, plain or through TLS */
#pragma once

#include <netinet/in.h>
#include <openssl/ssl.h>
#include <sys/uio.h>

#include "lib/base/map.h"
#include "lib/http/chunked.h"
#include "lib/http/head.h"
#include "lib/http/http.h"

#define HTTP_TICK_MS   250
#define HTTP_LINGER_MS 2000
/* Bytes that wait in all connections together, bodies that are not whole yet included. Beyond this,
 * the server cuts off clients that leave more than HTTP_WAITING_LITTLE waiting, the slowest
 * first. */
#define HTTP_WAITING_MAX     (256u << 20)
#define HTTP_WAITING_LITTLE  (64u << 10)
#define HTTP_WRITE_MAX       (8u << 20) /* a writer that does not heed HTTP_WRITE_HIGH is cut off */
#define HTTP_REPLY_MAX       (80u << 20)   /* a whole answer that waits */
#define HTTP_READ_SIZE       (256u * 1024) /* the server's read buffer */
#define HTTP_READ_HEAD       (16u * 1024)  /* at most this much is read ahead of a head */
#define HTTP_READ_CHUNKS     (64u * 1024)  /* and of a paused chunked body */
#define HTTP_DROP_MAX        (64u * 1024)  /* most bytes to skip of a body that nobody wanted */
#define HTTP_HEADERS_OUT_MAX (64u * 1024)
#define HTTP_FAULT_MAX       512 /* longest text about a failure */

enum conn_state {
    CONN_FIRST,     /* the first byte tells TLS from plain HTTP */
    CONN_HANDSHAKE, /* TLS */
    CONN_IDLE,      /* between two requests */
    CONN_HEAD,      /* a part of a head has come, or the first one is awaited */
    CONN_REQUEST,   /* a request is with its owner */
    CONN_PIPE,      /* the same, taken over */
    CONN_SKIP,      /* answered; the rest of its body is dropped */
    CONN_LINGER,    /* the last answer is on its way; bytes that come are dropped */
    CONN_CLOSED,
};

struct http_conn {
    uv_poll_t poll;
    struct work reading; /* reads the body */
    struct http_server *server;
    struct list in_server, in_dirty;
    SSL *ssl; /* NULL: plain, or not known yet */
    struct req *req;
    int fd;
    enum conn_state state;
    int armed;        /* events asked of the poll */
    bool dirty;       /* in the server's list of connections to settle */
    bool entered;     /* code is at work on it right now, and will settle it */
    bool gone;        /* the client is gone; nothing is read or written any more */
    bool blocked;     /* the socket takes nothing now */
    bool read_off;    /* bytes have come that nobody wants yet */
    bool hangup_off;  /* the client's end of stream has come, and did not count as its leaving */
    bool shut;        /* LINGER: our direction is closed */
    bool awaited;     /* whoever drains the server waits for it */
    bool again;       /* TLS holds bytes that no event will announce */
    bool scarce;      /* see struct http_req */
    struct strbuf in; /* read and not yet used */
    struct strbuf out;
    size_t in_off, out_off;
    uint64_t awaits; /* the change that must be kept before more is sent; 0: none */
    size_t kept;     /* bytes that the request's owner keeps, or of its body */
    size_t counted;  /* its share of the server's `waiting` */
    struct head_scan scan;
    uint64_t since;     /* the loop's time when the state began */
    uint64_t out_since; /* when the client last took something */
    struct in6_addr ip;
    char peer[46];
};

enum body_mode { BODY_LEFT, BODY_COLLECT, BODY_STREAM };
enum answer_mode {
    ANSWER_NONE,
    ANSWER_FIXED,
    ANSWER_CHUNKED,
    ANSWER_TO_CLOSE,
    ANSWER_RAW,
    ANSWER_DONE
};

/* Whether a long body has room, so that something can be made of it: see make.c. */
enum make_room { ROOM_UNASKED, ROOM_AWAITED, ROOM_TAKEN, ROOM_LEFT };

struct arena_block {
    struct list link;
    char data[];
};

/* A request: the owner sees `pub`. Lives in one allocation with its head. */
struct req {
    struct http_req pub;
    struct http_conn *conn; /* NULL in tests of the parser alone */
    struct list blocks;     /* of struct arena_block */

    uint64_t commits; /* changes that were made before it came */
    bool http10;
    bool keep_alive; /* as the client asked, later as the server decided */
    bool expect;     /* a 100 Continue is owed */

    enum body_mode body_mode;
    bool body_over;   /* the body's last byte was read */
    bool body_told;   /* the owner knows that the body is over */
    bool body_paused; /* by the owner */
    uint64_t body_left;
    uint64_t body_dropped;
    int64_t body_credit; /* bytes that may be missing before the client is too slow */
    struct chunked chunks;
    struct strbuf collected;
    void (*collect_done)(struct http_req *req, const char *body, size_t len);
    const struct http_make *make; /* instead of collect_done */
    const void *make_schema;
    void (*make_done)(struct http_req *req, void *made);
    struct make_job *job; /* not NULL: the body is being made into something */
    enum make_room room;
    struct list in_room; /* in the server's list `roomed` or `roomless` */
    size_t room_bytes;
    size_t room_seen; /* bytes that had come when the pace was last checked */
    unsigned room_ticks;

    enum answer_mode answer;
    bool started;
    bool no_body; /* HEAD, 204, 304 */
    bool choked;  /* http_write said false */
    bool aborted;
    uint64_t answer_left;
    struct strbuf headers;
};

struct listener {
    uv_poll_t poll;
    struct http_server *server;
    struct list in_server;
    int fd;
    enum http_security security;
    bool resting; /* out of descriptors: accepts again at the next tick */
};

struct http_server {
    uv_loop_t *loop;
    struct http_limits limits;
    void (*on_request)(struct http_req *req);
    void (*on_over)(struct http_req *req); /* these two may be NULL */
    void (*around)(struct http_req *req, bool in);
    const struct commits *commits;
    void *arg;
    uv_timer_t tick;
    uv_idle_t idle; /* runs while a connection is dirty */
    struct works *works;
    struct list jobs;   /* of job.c, those that do not run yet */
    unsigned n_jobs;    /* that run */
    uint64_t job_party; /* of the last that was started */
    struct list roomed, roomless;
    size_t room_taken;
    struct list listeners, conns, dirty;
    size_t n_conns, n_dirty, n_handles;
    size_t waiting;   /* bytes that clients have not taken yet */
    struct map peers; /* of struct peer_count, by address */
    SSL_CTX *tls;
    char *buf;
    char date[40];
    time_t date_at;
    bool draining, freed;
    void (*drained)(void *arg);
    void *drained_arg;
};

static inline struct req *req_of(const struct http_req *pub)
{
    return (struct req *)((uintptr_t)pub - offsetof(struct req, pub));
}

/* server.c */
/* Makes a connection from a connected stream socket, which it takes over. addr may be NULL. */
void server_adopt(struct http_server *s, int fd, enum http_security security,
                  const struct sockaddr *addr);
void server_conn_closed(struct http_server *s, struct http_conn *c);
void server_unref(struct http_server *s); /* a handle was closed */
/* Makes the loop settle the dirty connections. */
void server_wake(struct http_server *s);
const char *server_date(struct http_server *s);

/* peers.c: connections by address; IPv6 by /64. */
/* Fills the connection's ip and peer. */
void peer_read(struct http_conn *c, const struct sockaddr *addr);
/* False: the address has `max` connections already. Loopback is never counted. */
bool peers_enter(struct map *peers, const struct in6_addr *ip, unsigned max);
void peers_leave(struct map *peers, const struct in6_addr *ip);

/* conn.c */
void conn_start(struct http_conn *c, enum http_security security);
void conn_tick(struct http_conn *c, uint64_t now);
/* Makes sure that conn_settle is called: before the loop sleeps, or by the code that is at work on
 * the connection. */
void conn_wake(struct http_conn *c);
/* Does all that is due, until nothing is left to do. It may close the connection. */
void conn_settle(struct http_conn *c);
/* The client is gone, or is to be treated as if it were. */
void conn_lose(struct http_conn *c);
/* Answers in the error shape, if no answer was begun, and ends the connection. */
void conn_refuse(struct http_conn *c, int status, const char *message);
/* Whether a drain of the server has to wait for this connection. */
bool conn_is_busy(const struct http_conn *c);

/* req.c */
/* Makes a request from a whole head of `len` bytes. NULL: *ret_status and *ret_why say how to
 * refuse it. */
struct req *req_new(const char *head, size_t len, const struct head_scan *scan, int *ret_status,
                    const char **ret_why);
void req_free(struct req *r);

/* head.c. Whether a list like "a, b" has the word; fold: in any case. */
bool http_list_has(const char *list, const char *word, bool fold);

/* router.c. "GET"; "" for a method that no route has. */
const char *http_method_name(enum http_method m);

/* query.c */
/* Percent-decodes once, into the request's memory; `plus`: '+' is a space. NULL: the text holds a
 * NUL. */
char *http_decode(struct http_req *req, const char *text, size_t len, bool plus);

/* body.c */
/* Whether the owner may get bytes of the body now. */
bool body_flows(const struct req *r);
/* Takes as many of the bytes as it may and returns how many. If they are wrong, it refuses the
 * request or drops the client. */
size_t body_feed(struct req *r, const char *p, size_t n);
/* Drops the bytes. Returns how many, or -1 if the connection must end. */
ssize_t body_skip(struct req *r, const char *p, size_t n);
/* Tells the owner that the body has ended, if that is due. True: it told. */
bool body_tell_end(struct req *r);
/* Whether the rest of the body can be skipped to reach the next request. */
bool body_skippable(const struct req *r);
/* Gives the owner what was made of the body. */
void body_tell_made(struct req *r, void *made);

/* make.c */
/* Asks for room for a body of so many bytes, which flows when there is room. A second call does
 * nothing. */
void make_room_ask(struct req *r, size_t bytes);
void make_room_leave(struct req *r); /* gives room back, or stops waiting for it */
void make_room_tick(struct req *r);  /* every HTTP_TICK_MS while the body flows */
/* Takes the body over and makes something of it. body_tell_made follows, unless the request ends
 * before: then make_forget. */
void make_begin(struct req *r, struct strbuf *body);
void make_forget(struct make_job *j); /* NULL is allowed */

/* answer.c */
/* Appends an answer in the error shape, with the request's status and fault. */
void answer_refusal(struct strbuf *out, const struct http_req *req);
/* Appends the body of such an answer. */
void answer_error_body(struct strbuf *out, const struct http_req *req, int status,
                       const char *message);

/* io.c */
/* Bytes read, 0 at the end, -EAGAIN, or another -errno. */
ssize_t io_read(struct http_conn *c, char *buf, size_t cap);
void io_write(struct http_conn *c, const struct iovec *iov, size_t n);
void io_flush(struct http_conn *c);
size_t io_waiting(const struct http_conn *c);
/* Counts bytes that are kept for the connection, and cuts clients off if all keep too much. */
void io_keep(struct http_conn *c, size_t bytes);
/* Closes our direction. */
void io_shutdown(struct http_conn *c);

/* tls.c */
/* The context asks `show` for the certificate of each handshake, which puts it into the SSL: 1, or
 * 0 if it has none. */
int tls_context_by_name(int (*show)(SSL *ssl, void *arg), void *arg, SSL_CTX **ret,
                        struct sg_error *e);
int tls_context(const char *cert_pem, size_t cert_len, const char *key_pem, size_t key_len,
                SSL_CTX **ret, struct sg_error *e);
SSL *tls_open(SSL_CTX *ctx, int fd);
/* 0: done. -EAGAIN: try again later (*want_write: when the socket takes bytes). -EPROTO. */
int tls_handshake(SSL *ssl, bool *want_write);
ssize_t tls_read(SSL *ssl, char *buf, size_t cap, bool *again);
ssize_t tls_write(SSL *ssl, const char *p, size_t n);
void tls_shutdown(SSL *ssl);
