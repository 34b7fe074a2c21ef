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
 * on_request gets a request whose head is whole. The owner sets req->owner and req->on_close when
 * it will answer later. on_close comes exactly once, as the last call: after the answer was handed
 * to the socket, or when the client is gone before. No pointer to the request may be used after it.
 * Every function here may be called from inside every callback, and does nothing on a request whose
 * client is gone. None of them calls back: callbacks come from the loop, on_close too (but see
 * http_server_free). A client that shuts down its sending direction before it has its answer is
 * taken as gone.
 *
 * A request that breaks the framing (see conn.c) is answered 400 in the error shape, and the
 * connection closed; nothing that follows on it is read. */
#pragma once

#include <uv.h>

#include "lib/base/err.h"
#include "lib/base/ids.h"
#include "lib/text/strbuf.h"
#include "lib/http/work.h"

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
    unsigned body_grace_ms; /* averaged over this time; default 10 s */
    unsigned stall_ms;      /* a client that takes none of what waits for it; default 300 s */
    unsigned conns_max;     /* of the server; default 8192 */
    unsigned conns_per_ip;  /* not for loopback; default 512 */
    uint64_t turn_ns;       /* of a turn of the loop, for work in slices; default WORK_TURN_NS */
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
    HTTP_M_OTHER, /* valid, and never routed: method_name has it */
};

#define HTTP_PARAMS_MAX 4

struct http_req {
    /* What was asked; strings are NUL-terminated, valid until on_close, and hold no NUL inside. */
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
    bool scarce;   /* it has one of the last descriptors (lib/base/fds.h): to be answered shortly */
    char peer[46]; /* address of the client, as text */
    char id[ID_LEN + 1];  /* of this request: X-Request-Id of its answer */
    int status;           /* of the answer; 0 before it was begun */
    uint64_t answered_ns; /* clock_ns() when it was begun */
    int fault;            /* see http_failed; 0: it went well */
    const char *fault_text;
    const char *params[HTTP_PARAMS_MAX]; /* of the route's pattern, decoded: see router.h */

    /* The owner's. */
    struct http_server *server;
    void *owner;
    void *note; /* the server's owner's, whoever answers: see http_server_on_over */
    void (*on_close)(struct http_req *req);
    void (*on_writable)(struct http_req *req); /* http_write said false, now it may go on */
    void (*on_body)(struct http_req *req, const char *data, size_t len);
    void (*on_body_end)(struct http_req *req);
    uint64_t party;     /* whose work reading it is: see work.h; the client's address, if not set */
    size_t body_piece;  /* of it, at most so much at a time: where bytes cost much; 0: 256 KiB */
    bool body_may_rest; /* no body_rate: a stream of messages, which come when they come */
    bool unawaited;     /* it has no end of its own, such as a stream of news: see _drain */
    bool body_secret;   /* set before it is collected: wiped wherever this server has held it */
};

/* ---- server ---------------------------------------------------------------------------------- */

/* limits NULL: the defaults. */
struct http_server *http_server_new(uv_loop_t *loop, const struct http_limits *limits,
                                    void (*on_request)(struct http_req *req), void *arg);
void *http_server_arg(const struct http_server *s);
/* Called for each request just before its on_close, with its status: 0 if the client went before
 * there was one. Also for what was refused before it was a request, without a note and with empty
 * texts: of that, only id, peer, status and fault are of use, and nothing of this header may be
 * called for it but http_server_arg. */
void http_server_on_over(struct http_server *s, void (*over)(struct http_req *req));
/* Called before (in) and after a request's owner hears of its body: what is begun meanwhile is done
 * for that request. */
void http_server_around(struct http_server *s, void (*around)(struct http_req *req, bool in));
/* Accepts on a listening socket; takes it over. tls: needs http_server_set_tls before. */
int http_server_listen(struct http_server *s, int fd, bool tls, struct sg_error *e);
/* PEM texts. For connections from now on; the old ones keep theirs. TLS 1.2 and later only. */
int http_server_set_tls(struct http_server *s, const char *cert_pem, size_t cert_len,
                        const char *key_pem, size_t key_len, struct sg_error *e);
/* What comes from now on is answered as before, and each answer ends its connection: the owner
 * refuses what it will not begin. `done` is called when all that was under way is answered, but for
 * what is not awaited (http_req.unawaited) or was taken over. */
void http_server_drain(struct http_server *s, void (*done)(void *arg), void *arg);
size_t http_server_connections(const struct http_server *s);
size_t http_server_conns_max(const struct http_server *s);
/* Closes everything at once; on_close is called for each request, before this returns. The loop
 * must turn once more after it. */
void http_server_free(struct http_server *s);

/* What has to be done in slices, of requests and beside them. */
struct works *http_server_works(const struct http_server *s);

/* ---- request --------------------------------------------------------------------------------- */

/* The value of a header, or NULL. `name` in lower case. If it came twice: the first. */
const char *http_header_get(const struct http_req *req, const char *name);
/* A query parameter, percent- and plus-decoded once, into a NUL-terminated string that lives as
 * long as the request. NULL if absent; "" if it is there without a value. Invalid escapes stay as
 * they are; a value with %00 counts as absent. */
const char *http_query_get(struct http_req *req, const char *name);
/* Whether it came at all, with whatever value. */
bool http_query_has(const struct http_req *req, const char *name);
/* Memory that lives as long as the request. */
void *http_req_alloc(struct http_req *req, size_t size);
/* What its error answer says, for http_server_on_over: whoever answers tells it here, once. status:
 * that of the answer, or what it would be if another had not been begun already. */
void http_failed(struct http_req *req, int status, const char *message);
/* True once the client is gone or the answer is complete. */
bool http_req_over(const struct http_req *req);

/* The body. One of the two, during on_request or later; until then it waits in the socket. If
 * neither was called, what is left of it is read and dropped after the answer, up to 64 KiB; more
 * closes the connection. `Expect: 100-continue` is answered when the body is first wanted. */
/* All of it, up to max bytes: beyond, 413 is answered and `done` not called. It is valid during
 * `done` only. */
void http_body_collect(struct http_req *req, size_t max,
                       void (*done)(struct http_req *req, const char *body, size_t len));
/* As http_body_collect, and something is made of it before `done`, whose it is then. If it is
 * longer than WORK_PIECE that happens on a thread: `make` sees the bytes, and `schema` which
 * outlives every request, and nothing else. `drop` frees what was made for a client that has gone
 * meanwhile. */
struct http_make {
    void *(*make)(const void *schema, const char *body, size_t len);
    void (*drop)(void *made);
};
void http_body_make(struct http_req *req, size_t max, const struct http_make *how,
                    const void *schema, void (*done)(struct http_req *req, void *made));
/* The same for a part of a body that is streamed, always on a thread. Takes the part over. One at a
 * time: the next may follow `done`. */
void http_part_make(struct http_req *req, struct strbuf *part, const struct http_make *how,
                    const void *schema, void (*done)(struct http_req *req, void *made));
/* Piece by piece to on_body, then on_body_end; both must be set. A piece is a slice of work
 * (work.h): who does much with one sets http_req.body_piece before. */
void http_body_stream(struct http_req *req);
void http_body_pause(struct http_req *req);
void http_body_resume(struct http_req *req);

/* ---- answer ---------------------------------------------------------------------------------- */

/* Adds a header to the answer that is about to start. A value with CR, LF or NUL is a bug of ours
 * and left out, as is what goes beyond 64 KiB in all. Content-Length, Transfer-Encoding, Connection
 * and Date are the server's. */
void http_add_header(struct http_req *req, const char *name, const char *value);
/* A whole answer. content_type NULL: none. Status 204 and 304 have no body; an empty body of any
 * other has Content-Length: 0. */
void http_reply(struct http_req *req, int status, const char *content_type, const void *body,
                size_t len);
/* An answer in pieces. length -1: chunked (HTTP/1.0: until close). */
void http_start(struct http_req *req, int status, const char *content_type, int64_t length);
/* False: more than HTTP_WRITE_HIGH wait; the data was taken all the same, stop until on_writable. A
 * writer that goes on until 8 MiB wait loses its connection. Also false when the request is over.
 * Data beyond the length that was given to http_start is dropped. */
bool http_write(struct http_req *req, const void *data, size_t len);
/* The answer is complete. If fewer bytes than announced were written it cannot be: http_abort. */
void http_finish(struct http_req *req);
/* Drops the connection as it is: an answer that was started and cannot be completed. */
void http_abort(struct http_req *req);
bool http_started(const struct http_req *req);
/* So many bytes wait for the client with the owner, who has them until the client takes them. They
 * count with those that wait in connections: when all of these are too many, the client that has
 * taken nothing for the longest time is cut off. 0: no more. */
void http_keep(struct http_req *req, size_t bytes);

#define HTTP_WRITE_HIGH (256u * 1024)

const char *http_status_text(int status);

/* ---- another protocol ------------------------------------------------------------------------ */

/* The connection becomes a plain pipe of bytes: on_body brings what the client sends (pause and
 * resume as with a body; on_body_end: it has shut its direction down), http_write writes as is,
 * http_finish closes after what was written. Instead of http_start; the caller writes the answer's
 * head itself. A request that has a body which was not read to its end is aborted. */
void http_take_over(struct http_req *req);
