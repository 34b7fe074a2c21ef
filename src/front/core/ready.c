#include "front/core/ready.h"

#include <string.h>

#include "lib/base/clock.h"
#include "front/core/node.h"
#include "front/core/reply.h"
#include "front/core/warden.h"

#define GOOD_NS 1000000000ull

struct asking {
    struct list link;
    struct http_req *req;
};

static struct {
    struct list waiting;
    bool asked; /* the warden was asked */
    uint64_t told_ns;
    int r;
    struct sg_error e;
} ready;

static void answer(struct http_req *req)
{
    struct sg_error closed;

    if (front_of(req)->draining) {
        http_add_header(req, "Retry-After", "5");
        reply_error(req, 503, "not ready: the server is draining");
    } else if (node_check_open(front_of(req), &closed) < 0) {
        http_add_header(req, "Retry-After", "5");
        reply_error(req, 503, "not ready: %s", closed.message);
    } else if (ready.r < 0) {
        http_add_header(req, "Retry-After", "1");
        reply_error(req, 503, "not ready: %s", ready.e.message);
    } else {
        reply_empty(req, 204);
    }
}

static void on_close(struct http_req *req)
{
    struct asking *a = req->owner;

    list_remove(&a->link);
    free(a);
}

static void on_told(void *arg UNUSED, const struct warden_answer *w)
{
    ready.asked = false;
    ready.told_ns = clock_ns();
    ready.r = w->r;
    ready.e = w->e;
    for (struct asking *first; (first = LIST_FIRST(struct asking, &ready.waiting, link));) {
        struct http_req *req = first->req;

        req->on_close = NULL;
        on_close(req);
        answer(req);
    }
}

void ready_answer(struct http_req *req)
{
    struct order o = {.op = ORDER_READINESS};

    if (front_of(req)->draining || (ready.told_ns && clock_ns() - ready.told_ns < GOOD_NS)) {
        answer(req);
        return;
    }
    struct asking *a = NEW(struct asking, .req = req);
    list_push(&ready.waiting, &a->link);
    req->owner = a;
    req->on_close = on_close;
    req->unawaited = true;
    if (ready.asked)
        return;
    ready.asked = true;
    warden_order(front_of(req), &o, -1, on_told, NULL);
}
