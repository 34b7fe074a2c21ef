/* The answer to one POST, until all that it asks is answered. mcp.h has its life.
 *
 * Messages are gathered in `out`, as parts of a JSON document, or as events once it is a stream. A
 * stream takes no more than the client does: what it cannot take waits in `out`, and news of
 * progress are left out meanwhile. */
#pragma once

#include "front/core/front.h"
#include "front/mcp/message.h"
#include "front/mcp/session.h"
#include "front/mcp/version.h"
#include "front/store/store.h"

struct mcp_call;

struct exchange {
    struct http_req *http;
    struct front *front;
    struct store_tenant tenant;
    char session[SESSION_LEN + 1]; /* "": it has none */
    enum mcp_version version;
    /* What the client's configuration says; NULL if nothing. */
    const char *conversation, *path;
    json_t *body;
    bool may_stream, may_json;

    bool batch;       /* the body is an array, and so is the answer */
    unsigned open;    /* requests without an answer, and one while the body is read */
    unsigned errors;  /* answers that are errors */
    int error_status; /* HTTP: for an answer that is nothing but an error */
    struct mcp_call *calls;
    struct strbuf out;
    size_t written; /* of out, in a stream */
    bool streaming, choked;
    uv_timer_t *timer;
    uint64_t began_ms, wrote_ms; /* uv_now() */
};

/* Takes the request over. */
struct exchange *exchange_new(struct http_req *req, const struct store_tenant *tenant);
/* Between these two requests are counted and answered, perhaps all at once. */
void exchange_begin(struct exchange *x);
void exchange_end(struct exchange *x);

/* The answer to a request, a message that is whole. */
void exchange_answer(struct exchange *x, const struct strbuf *message);
void exchange_error(struct exchange *x, const json_t *id, enum message_code code,
                    const char *message, const char *data);
/* A request gets no answer. */
void exchange_forgo(struct exchange *x);
/* A message that answers nothing. False: the client cannot take it now, or ever. */
bool exchange_tell(struct exchange *x, const struct strbuf *message);

/* Refuses the whole POST: HTTP's status, and an error that belongs to no message. */
void exchange_refuse(struct http_req *req, int status, enum message_code code, const char *fmt, ...)
    PRINTF(4, 5);
