/* An HTTP/1.1 server on libuv and llhttp: connections, requests, bodies in both directions.
 *
 * One thread, callbacks. A connection handles one request at a time; bytes of the next wait in the
 * socket. Nothing is unbounded: a head has limits, a body is given piece by piece or collected up
 * to a limit, and what is written waits in a queue with a high-water mark that the writer must
 * heed.
 *
 * Life of a request:
 *
 *   head parsed --> on_request --> body: collected, streamed, or left --> reply --> on_close
 *                                                                           ^
 *                        the client goes away, or is too slow --------------+
 *
 * on_request gets a request whose head is whole. Whoever will answer it is its owner, who sets
 * req->owner and req->on_close to answer later. on_close is called exactly once, as the last call:
 * after the answer was handed to the socket, or when the client is gone before. No pointer to the
 * request may be used after it. Every function here may be called from inside every callback, and
 * does nothing on a request whose client is gone. None of them calls back: callbacks come from the
 * loop, on_close too (but see http_server_free). A client that shuts down its sending direction
 * before it has its answer is taken as gone.
 *
 * A request that breaks the framing (see conn.c) is answered 400 in the error shape. The server
 * then closes the connection and reads nothing more from it. */
#pragma once

#include <uv.h>

#include "lib/base/commits.h"
#include "lib/base/err.h"
#include "lib/base/ids.h"
#include "lib/text/strbuf.h"
#include "lib/http/work.h"

struct ssl_st; /* of OpenSSL */
struct http_server;
struct http_conn;
struct http_req;

/* Limits. */
struct http_limits {
    size_t head_max;        /* request line and headers; default 32 KiB */
    size_t target_max;      /* default 8 KiB */
    unsigned headers_max;   /* default 100 */
    unsigned head_ms;       /* from the first byte of a head to its end; default 10 s. Also for
                             * the first byte after a connect, and for the TLS handshake */
    unsigned idle_ms;       /* between requests; default 640 s: SDKs keep connections */
    unsigned body_rate;     /* bytes a second that a body must bring; default 1024 */
    unsigned body_grace_ms; /* body_rate is an average over this time; default 10 s */
    unsigned stall_ms;      /* a client that takes no byte for so long is dropped; default 300 s */
    unsigned conns_max;     /* of the server; default 8192 */
    unsigned conns_per_ip;  /* not for loopback; default 512 */
    uint64_t turn_ns;       /* for work in slices, of a turn of the loop; default WORK_TURN_NS */
};
#define HTTP_LIMITS_DEFAULT                                                               \
    {                                                                                     \
        .head_max = 32768, .target_max = 8192, .headers_max = 100, .head_ms = 10000,      \
        .idle_ms = 640000, .body_rate = 1024, .body_grace_ms = 10000, .stall_ms = 300000, \
        .conns_max = 8192, .conns_per_ip = 512, .turn_ns = WORK_TURN_NS                   \
    }

struct http_header {
    const char *name; /* lower case */
    const char *value;
};

enum http_method {
    HTTP_M_GET,
    HTTP_M_HEAD,
    HTTP_M_POST,
    HTTP_M_PUT,
    HTTP_M_PATCH,
    HTTP_M_DELETE,
    HTTP_M_OPTIONS,
    HTTP_M_OTHER, /* valid, but no route has it; see method_name */
};

#define HTTP_PARAMS_MAX 4

struct http_req {
    /* The request. Strings are NUL-terminated, hold no NUL inside and are valid until
     * on_close. */
    enum http_method method;
    const char *method_name;
    const char *target; /* as it came */
    const char *path;   /* without the query; not decoded */
    const char *query;  /* after '?', not decoded; "" if none */
    const char *host;   /* lower case, port included; "" in HTTP/1.0 without it */
    const struct http_header *headers;
    size_t n_headers;
    int64_t content_length; /* -1: chunked */
    bool upgrade;           /* asks for another protocol (Connection: upgrade) */
    bool tls;
    bool scarce;          /* it uses one of the last descriptors (lib/base/fds.h): answer soon */
    char peer[46];        /* address of the client, as text */
    char id[ID_LEN + 1];  /* of this request: X-Request-Id of its answer */
    int status;           /* of the answer; 0 before it was begun */
    uint64_t answered_ns; /* clock_ns() when it was begun */
    int fault;            /* see http_failed; 0: it went well */
    const char *fault_text;
    const char *params[HTTP_PARAMS_MAX]; /* of the route's pattern, decoded: see router.h */

    /* The owner's fields. */
    struct http_server *server;
    void *owner;
    void *note; /* for the owner of the server, whoever answers: see http_server_on_over */
    void (*on_close)(struct http_req *req);
    void (*on_writable)(struct http_req *req); /* http_write said false, now it may go on */
    void (*on_body)(struct http_req *req, const char *data, size_t len);
    void (*on_body_end)(struct http_req *req);
    uint64_t party;     /* whose work reading the body is (work.h); default: the client's address */
    size_t body_piece;  /* most bytes of the body at a time, if bytes are costly; 0: 256 KiB */
    bool body_may_rest; /* no body_rate: the body is a stream of messages with pauses between */
    bool unawaited;     /* it never ends by itself, as a stream of news: see http_server_drain */
    bool body_secret;   /* set before http_body_collect: the server wipes each of its copies */
};

/* ---- server ---------------------------------------------------------------------------------- */

/* limits NULL: the defaults. */
struct http_server *http_server_new(uv_loop_t *loop, const struct http_limits *limits,
                                    void (*on_request)(struct http_req *req), void *arg);
void *http_server_arg(const struct http_server *s);
/* `over` is called for each request just before its on_close, with the status of its answer: 0 if
 * the client went before there was one. It is also called for bytes that were refused before they
 * were a request. Those have no note, and empty texts: only id, peer, status and fault are of use,
 * and no function of this header but http_server_arg may be called for them. */
void http_server_on_over(struct http_server *s, void (*over)(struct http_req *req));
/* An answer to a request waits until the changes are kept that were made since the request came, up
 * to the answer's beginning. http_server_kept: c->kept has grown. */
void http_server_commits(struct http_server *s, const struct commits *c);
void http_server_kept(struct http_server *s);
/* `around` is called before (in) and after a request's owner hears of its body, so that the
 * server's owner knows for which request work begins meanwhile. */
void http_server_around(struct http_server *s, void (*around)(struct http_req *req, bool in));
enum http_security {
    HTTP_PLAIN,
    HTTP_TLS,
    HTTP_EITHER, /* the client's first byte tells which */
};
/* Accepts on a listening socket; takes it over. All but HTTP_PLAIN need a certificate before. */
int http_server_listen(struct http_server *s, int fd, enum http_security security,
                       struct sg_error *e);
/* Sets certificate and key, as PEM texts, for connections from now on; the old ones keep theirs.
 * TLS 1.2 and later only. */
int http_server_set_tls(struct http_server *s, const char *cert_pem, size_t cert_len,
                        const char *key_pem, size_t key_len, struct sg_error *e);
/* Instead of one certificate: `show` puts one and its key into the SSL of each handshake, by the name
 * that the client asks for (SSL_set_cert_cb). 1, or 0 if it has none. */
int http_server_set_certificates(struct http_server *s, int (*show)(struct ssl_st *ssl, void *arg),
                                 void *arg, struct sg_error *e);
/* Begins the end of the server. Requests that come from now on are answered as before, and each
 * answer ends its connection; the owner refuses what it will not begin. `done` is called when all
 * requests that were under way are answered, except those that nobody waits for
 * (http_req.unawaited) and those that were taken over. */
void http_server_drain(struct http_server *s, void (*done)(void *arg), void *arg);
size_t http_server_connections(const struct http_server *s);
size_t http_server_conns_max(const struct http_server *s);
/* Closes everything at once; on_close is called for each request, before this returns. The loop
 * must turn once more after it. */
void http_server_free(struct http_server *s);

/* The queue of work in slices, for requests and for other work (work.h). */
struct works *http_server_works(const struct http_server *s);

/* ---- request --------------------------------------------------------------------------------- */

/* The value of a header, or NULL. `name` in lower case. If the header came twice: the first. */
const char *http_header_get(const struct http_req *req, const char *name);
/* A query parameter, percent- and plus-decoded once, into a NUL-terminated string that lives as
 * long as the request. NULL if absent; "" if it is there without a value. Invalid escapes stay as
 * they are; a value with %00 counts as absent. */
const char *http_query_get(struct http_req *req, const char *name);
/* The same for one that may come several times, the first being 0. */
const char *http_query_nth(struct http_req *req, const char *name, size_t n);
/* Whether the parameter came at all, with whatever value. */
bool http_query_has(const struct http_req *req, const char *name);
/* Memory that lives as long as the request. */
void *http_req_alloc(struct http_req *req, size_t size);
/* Notes the text of an error answer, for http_server_on_over. Whoever answers calls this once.
 * status: that of the answer, or what it would be if another had not been begun already. */
void http_failed(struct http_req *req, int status, const char *message);
/* True once the client is gone or the answer is complete. */
bool http_req_over(const struct http_req *req);

/* The body. Call http_body_collect or http_body_stream, during on_request or later; until then the
 * body waits in the socket. If neither was called, the server reads and drops the rest of the body
 * after the answer, up to 64 KiB; more closes the connection. `Expect: 100-continue` is answered
 * when the body is first wanted. */
/* Collects the whole body, up to max bytes. If it is longer, 413 is answered and `done` is not
 * called. The body is valid during `done` only. */
void http_body_collect(struct http_req *req, size_t max,
                       void (*done)(struct http_req *req, const char *body, size_t len));
/* Like http_body_collect, but `make` builds something from the body before `done`, which then owns
 * what was made. If the body is longer than WORK_PIECE, `make` runs on a thread: it sees the bytes,
 * and `schema`, which outlives every request, and nothing else. `drop` frees what was made for a
 * client that has gone meanwhile. */
struct http_make {
    void *(*make)(const void *schema, const char *body, size_t len);
    void (*drop)(void *made);
};
void http_body_make(struct http_req *req, size_t max, const struct http_make *how,
                    const void *schema, void (*done)(struct http_req *req, void *made));
/* The same for a part of a streamed body, always on a thread. Takes the part over. One part at a
 * time: the next may follow `done`. */
void http_part_make(struct http_req *req, struct strbuf *part, const struct http_make *how,
                    const void *schema, void (*done)(struct http_req *req, void *made));
/* Gives the body piece by piece to on_body, then calls on_body_end; both must be set. A piece is a
 * slice of work (work.h): an owner that does much with one sets http_req.body_piece before. */
void http_body_stream(struct http_req *req);
void http_body_pause(struct http_req *req);
void http_body_resume(struct http_req *req);

/* ---- answer ---------------------------------------------------------------------------------- */

/* Adds a header to the answer that is about to start. The server itself writes Content-Length,
 * Transfer-Encoding, Connection and Date. A value with CR, LF or NUL is a bug of ours and is left
 * out, as are headers beyond 64 KiB in all. */
void http_add_header(struct http_req *req, const char *name, const char *value);
/* The answer that is about to start tells of a change that the server made by itself: it waits until
 * all changes so far are kept. */
void http_await_changes(struct http_req *req);
/* Sends a whole answer. content_type NULL: none. Status 204 and 304 have no body; an empty body of
 * any other status has Content-Length: 0. */
void http_reply(struct http_req *req, int status, const char *content_type, const void *body,
                size_t len);
/* Starts an answer in pieces. length -1: chunked (HTTP/1.0: until close). */
void http_start(struct http_req *req, int status, const char *content_type, int64_t length);
/* Writes a piece of the answer. False: more than HTTP_WRITE_HIGH bytes wait; the data was taken all
 * the same, but stop until on_writable. A writer that goes on until 8 MiB wait loses its
 * connection. Also false when the request is over. Data beyond the length that was given to
 * http_start is dropped. */
bool http_write(struct http_req *req, const void *data, size_t len);
/* Completes the answer. If fewer bytes than announced were written, this is http_abort. */
void http_finish(struct http_req *req);
/* Drops the connection as it is, for an answer that was started and cannot be completed. */
void http_abort(struct http_req *req);

/* ---- threads --------------------------------------------------------------------------------- */

/* Work that takes too long for the loop, such as writing a long answer; a member of the struct that
 * it is for. `run` is called on a thread when its party has its turn, beside the bodies of
 * http_body_make; it uses nothing that the loop may use meanwhile. `done` follows in the loop. */
struct http_job {
    void (*run)(struct http_job *j);
    void (*done)(struct http_job *j);
    struct http_server *server; /* this and the rest belong to job.c */
    uint64_t party;
    bool running;
    struct list link;
    uv_work_t work;
};
void http_job_begin(struct http_server *s, struct http_job *j, uint64_t party);
/* True: the job had not begun, and never will. False: it runs, and `done` is still to come. */
bool http_job_drop(struct http_job *j);
bool http_started(const struct http_req *req);
/* Tells the server that the owner itself keeps so many bytes for the client. They count with those
 * that wait in connections: when there are too many in all, the server cuts off the client that has
 * taken nothing for the longest time. 0: no more. */
void http_keep(struct http_req *req, size_t bytes);

#define HTTP_WRITE_HIGH (256u * 1024)

const char *http_status_text(int status);

/* ---- another protocol ------------------------------------------------------------------------ */

/* Turns the connection into a plain pipe of bytes. on_body brings what the client sends (pause and
 * resume as with a body; on_body_end: the client has shut its direction down), http_write writes as
 * is, http_finish closes after what was written. Called instead of http_start; the caller writes
 * the answer's head itself. A request whose body was not read to its end is aborted. */
void http_take_over(struct http_req *req);
