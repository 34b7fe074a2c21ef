/* POST /execute: a cell.
 *
 * The answer starts when the cell's turn has come, so that a bad request gets its own status. After
 * two seconds in the queue it starts all the same, for clients that wait for a head with a time
 * limit; a refusal after that is an error line. While nothing else is written, a keepalive line is
 * written every five seconds.
 *
 * When the client goes away the call is cancelled, and the agent interrupts the cell. */
#include "front/core/reply.h"
#include "front/interpreter/cell.h"
#include "front/interpreter/routes.h"

struct execution {
    struct cell cell;
    struct http_req *req;
};

static struct http_req *request_of(struct cell *c)
{
    struct execution *x = c->owner;

    return x->req;
}

static void on_close(struct http_req *req)
{
    struct execution *x = req->owner;

    cell_cancel(&x->cell);
    cell_done(&x->cell);
    sandbox_unref(x->cell.sandbox);
    free(x);
}

static void on_writable(struct http_req *req)
{
    struct execution *x = req->owner;

    cell_resume(&x->cell);
}

static void on_start(struct cell *c)
{
    struct http_req *req = request_of(c);

    http_add_header(req, "Cache-Control", "no-store");
    http_add_header(req, "X-Accel-Buffering", "no"); /* tells proxies to pass lines on at once */
    http_start(req, 200, "application/x-ndjson", -1);
}

static bool on_write(struct cell *c, const char *p, size_t len)
{
    return http_write(request_of(c), p, len);
}

static void on_over(struct cell *c, bool failed UNUSED)
{
    http_finish(request_of(c));
}

static void on_refused(struct cell *c, int status, const char *message)
{
    struct http_req *req = request_of(c);

    if (http_started(req))
        http_abort(req);
    else
        refuse_call(req, c->sandbox, status, message,
                    c->request.context[0] ? c->request.context : NULL);
}

static void on_body(struct http_req *req, void *made)
{
    struct execution *x = req->owner;
    struct execute_request request;

    if (execute_request_take(req, made, &request))
        cell_begin(&x->cell, &request);
}

void interpreter_execute(struct http_req *req)
{
    struct execution *x = NEW(struct execution, .req = req);
    struct sandbox *sandbox = sandbox_ref(req->owner);

    x->cell = (struct cell){.sandbox = sandbox,
                            .sanitise = output_filter_mode_of(sandbox->front, sandbox->spec.tenant,
                                                              sandbox->spec.context[0] != '\0'),
                            .owner = x,
                            .on_start = on_start,
                            .on_write = on_write,
                            .on_over = on_over,
                            .on_refused = on_refused};
    req->owner = x;
    req->on_close = on_close;
    req->on_writable = on_writable;
    http_body_make(req, EXECUTE_BODY_MAX, &interpreter_make, NULL, on_body);
}
