#include "front/main/drain.h"

#include <string.h>

#include "front/contexts/context.h"
#include "front/core/reply.h"
#include "lib/log/log.h"

#define LEAVE_MS 3000 /* how long to wait for a database that does not answer */

static struct {
    struct front *front;
    void (*leave)(void *arg);
    uv_timer_t timer;
    bool waited; /* the wait for requests under way is over */
    bool left;
} drain;

static void leave(void *arg UNUSED)
{
    if (drain.left)
        return;
    drain.left = true;
    uv_timer_stop(&drain.timer);
    drain.leave(drain.front);
}

static void on_database_late(uv_timer_t *t)
{
    log_line(LEVEL_WARN,
             "the store of contexts does not answer: the end of this server is not stored");
    leave(t->data);
}

static void sign_off(void *arg UNUSED)
{
    if (drain.waited)
        return;
    drain.waited = true;
    uv_timer_start(&drain.timer, on_database_late, LEAVE_MS, 0);
    contexts_leave(drain.front, leave, NULL);
}

static void on_late(uv_timer_t *t UNUSED)
{
    if (!drain.waited)
        log_line(LEVEL_WARN, "drain_timeout has expired: requests still under way are ended");
    sign_off(NULL);
}

void drain_begin(struct front *f, void (*leave_fn)(void *arg))
{
    if (f->draining)
        return;
    f->draining = true;
    drain.front = f;
    drain.leave = leave_fn;
    uv_timer_init(f->loop, &drain.timer);
    uv_timer_start(&drain.timer, on_late, f->settings.drain_timeout_ms, 0);
    http_server_drain(f->http, sign_off, NULL);
}

static bool is_post(const struct http_req *req)
{
    return req->method == HTTP_M_POST || req->method == HTTP_M_PUT || req->method == HTTP_M_PATCH;
}

/* Whether the request starts a program or a cell. A client that waits for one that runs already may
 * still write to it, move files and end it. */
static bool begins_inside(const struct http_req *req, unsigned port)
{
    if (port == FRONT_ENVD_PORT)
        return strcmp(req->path, "/process.Process/Start") == 0;
    return port == FRONT_INTERPRETER_PORT &&
           (strcmp(req->path, "/execute") == 0 || strcmp(req->path, "/contexts") == 0);
}

/* Whether the request may ask for a sandbox by the path of a conversation, which another server may
 * have. */
static bool may_be_elsewhere(const struct http_req *req)
{
    return strncmp(req->path, "/v1/", strlen("/v1/")) == 0 || strcmp(req->path, "/mcp") == 0 ||
           strcmp(req->path, "/sandboxes") == 0 || strcmp(req->path, "/v2/sandboxes") == 0;
}

bool drain_refuses(struct http_req *req, unsigned port)
{
    if (!front_of(req)->draining || !is_post(req) ||
        (port ? !begins_inside(req, port) : may_be_elsewhere(req)))
        return false;
    http_add_header(req, "Retry-After", "5");
    reply_error(req, 503, "the server is shutting down and takes no new work: try again soon");
    return true;
}
