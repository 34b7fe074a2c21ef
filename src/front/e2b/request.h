/* A request of the control plane, while it is being answered.
 *
 * Answers often wait for the warden, and the client may go away meanwhile. So this structure lives
 * until the client is gone and no callback is outstanding.
 *
 *   e2b_wait(q) --> an order --> e2b_back(q): true if the client still waits for the answer */
#pragma once

#include "front/core/sandbox.h"
#include "front/core/front.h"
#include "front/core/reply.h"
#include "front/e2b/field.h"
#include "lib/http/router.h"
#include "front/store/store.h"

struct e2b_req {
    struct http_req *http; /* NULL once the client is gone */
    struct front *front;
    struct store_tenant tenant;
    json_t *body;          /* an object; NULL if the route takes no body */
    struct fields in;      /* the body's fields */
    struct sg_error wrong; /* with one of them */
    char id[ID_LEN + 1];
    unsigned waiting;
    void (*handler)(struct http_req *req);
    /* The handler's own. on_gone is called when the answer is whole or the client is gone; NULL:
     * there is nothing to end. */
    void *work;
    void (*on_gone)(void *work);
};

static inline struct e2b_req *e2b_of(struct http_req *req)
{
    return req->owner;
}

#define E2B_BODY_MAX (1024u * 1024) /* of most routes that take one */

/* Calls the handler of the route, which finds the e2b_req in req->owner. If the route takes a body
 * (body_max), it is read first. */
void e2b_begin(struct http_req *req, const struct store_tenant *tenant,
               const struct http_route *route);
/* Reads the body as JSON, at most max bytes, then calls the handler. Answers itself if the body is
 * too long or no JSON. For routes whose handler must do something before. */
void e2b_with_body(struct http_req *req, size_t max, void (*handler)(struct http_req *req));
/* Whether all fields that were read so far are right. False: answered. */
bool e2b_read(struct e2b_req *q);

/* Finds the route of a request. NULL: answered, 404 or 405. */
const struct http_route *e2b_route(struct http_req *req, const struct http_route *routes, size_t n);

/* Notes that one more callback will come. */
void e2b_wait(struct e2b_req *q);
/* Notes that a callback came. False: nobody waits for the answer, and q may be gone. */
bool e2b_back(struct e2b_req *q);

/* An answer that is an object. Its fields are written between reply_begin and reply_send. */
struct reply {
    struct strbuf text;
    struct json json;
};
struct json *reply_begin(struct reply *r, size_t max);
void reply_send(struct e2b_req *q, int status, struct reply *r);

/* The sandbox that the URL names, if it is the tenant's. NULL: answered; the answer is the same
 * whether the sandbox is unknown or another tenant's. A suffix "-client", which old programs add,
 * is left out. */
struct sandbox *e2b_sandbox(struct e2b_req *q);
/* Answers with the error of an order about q's sandbox. */
void e2b_failed(struct e2b_req *q, const struct sg_error *e);
/* e2b_back for an order about q's sandbox. True: it went well, and the client waits for the
 * answer. */
bool e2b_done(struct e2b_req *q, int r, const struct sg_error *e);
/* A sandbox_done that answers 204, or with the error. */
void e2b_done_empty(void *arg, struct sandbox *b, int r, const struct sg_error *e);
/* How many sandboxes the tenant may have at once. */
uint32_t e2b_sandbox_limit(const struct e2b_req *q);

/* Copies the part of an id before "-" to ret; -EINVAL if that cannot be an id. */
int e2b_short_id(const char *id, char ret[ID_LEN + 1]);
