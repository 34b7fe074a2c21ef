/* The answer to one POST, until every request in it is answered. mcp.h shows its states.
 *
 * Messages are gathered in `out`, as parts of a JSON document, or as events once the answer is a
 * stream. A stream is written no faster than the client reads: the rest waits in `out`, and
 * progress messages are left out meanwhile. */
#pragma once

#include "front/core/front.h"
#include "front/mcp/message.h"
#include "front/mcp/session.h"
#include "front/mcp/version.h"
#include "lib/base/list.h"
#include "front/store/store.h"

struct mcp_call;

struct exchange {
    struct http_req *http;
    struct front *front;
    struct store_tenant tenant;
    char session[SESSION_LEN + 1]; /* "": none */
    enum mcp_version version;
    /* Set in the client's configuration; NULL: not set. */
    const char *conversation, *path;
    json_t *body;
    bool may_stream, may_json;

    bool batch;       /* the body is an array, and so is the answer */
    unsigned open;    /* requests without an answer, plus one while the body is read */
    unsigned errors;  /* answers that are errors */
    int error_status; /* HTTP status for an answer that is nothing but an error */
    struct list calls;
    struct strbuf out;
    size_t written; /* bytes of `out` that were written, in a stream */
    bool streaming, choked;
    uv_timer_t *timer;
    uint64_t began_ms, wrote_ms; /* uv_now() */
};

/* Takes over the request. */
struct exchange *exchange_new(struct http_req *req, const struct store_tenant *tenant);
/* Requests are counted and answered, perhaps all at once, between these two calls. */
void exchange_begin(struct exchange *x);
void exchange_end(struct exchange *x);

/* Adds the answer to a request, a complete message. */
void exchange_answer(struct exchange *x, const struct strbuf *message);
void exchange_error(struct exchange *x, const json_t *id, enum message_code code,
                    const char *message, const char *data);
/* A request gets no answer: stops waiting for it. */
void exchange_forgo(struct exchange *x);
/* Sends a message that answers no request. False: the client cannot take it now, or ever. */
bool exchange_tell(struct exchange *x, const struct strbuf *message);

/* Refuses the whole POST, with an HTTP status and an error that belongs to no message. Returns
 * false: the request is not to go on. */
bool exchange_refuse(struct http_req *req, int status, enum message_code code, const char *fmt, ...)
    PRINTF(4, 5);
