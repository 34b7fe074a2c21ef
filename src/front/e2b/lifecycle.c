/* How long a sandbox lives, and when it pauses.
 *
 *   timeout    the end is now + t, sooner or later than before; 0 ends the sandbox
 *   refreshes  the end is not before now + t
 *   connect    like refreshes for a running sandbox; a paused one is resumed with t
 *   resume     only for a paused sandbox
 *
 * No end is later than the start plus the server's max_timeout: a longer time is cut, and refused
 * when nothing is left. */
#include "lib/base/clock.h"
#include "front/e2b/path.h"
#include "front/e2b/sandbox.h"
#include "front/e2b/spec.h"
#include "front/core/operation.h"
#include "front/core/request_log.h"
#include "front/telemetry/figures.h"

#define REFRESH_MIN_S 15
#define REFRESH_MAX_S 3600

/* Cuts the timeout to what is left of the sandbox's longest life. False: answered. */
static bool clamp_timeout(struct e2b_req *q, const struct sandbox *b, uint64_t *timeout_ms)
{
    /* A context's sandbox lives as long as the context is used. */
    int64_t age = b->spec.context[0] ? 0 : clock_wall_ms() - b->spec.started_ms;
    uint64_t max = q->front->settings.max_timeout_ms, lived = age > 0 ? (uint64_t)age : 0;

    if (lived > max) {
        reply_error(q->http, 400, "Max instance length exceeded");
        return false;
    }
    if (*timeout_ms > max - lived)
        *timeout_ms = max - lived;
    return true;
}

bool sandbox_is_running(struct e2b_req *q, const struct sandbox *b)
{
    if (b->busy == BUSY_PAUSING)
        reply_error(q->http, 409, "Sandbox \"%s\" is being paused", b->id);
    else if (b->busy == BUSY_RESUMING)
        reply_error(q->http, 409, "Sandbox \"%s\" is being resumed", b->id);
    else if (b->state != SANDBOX_RUNNING)
        reply_no_sandbox(q->http, q->tenant.id, b->id);
    else
        return true;
    return false;
}

/* A request that sets a sandbox's end, until it is set. */
struct moving {
    struct e2b_req *q;
    sandbox_done done; /* with q */
    int64_t before_ms;
};

static void on_moved(void *arg, struct sandbox *b, int r, const struct sg_error *e)
{
    struct moving *m = arg;

    if (r == 0 && b->end_ms != m->before_ms)
        operation_updated(b->front, b, "timeout");
    m->done(m->q, b, r, e);
    free(m);
}

static void set_end(struct e2b_req *q, struct sandbox *b, uint64_t timeout_ms, bool extend_only,
                    sandbox_done done)
{
    struct moving *m = NEW(struct moving, .q = q, .done = done, .before_ms = b->end_ms);

    e2b_wait(q);
    sandbox_set_timeout(b, timeout_ms, extend_only, on_moved, m);
}

static void move_end(struct e2b_req *q, struct sandbox *b, uint64_t timeout_ms, bool extend_only)
{
    if (sandbox_is_running(q, b) && clamp_timeout(q, b, &timeout_ms))
        set_end(q, b, timeout_ms, extend_only, e2b_done_empty);
}

void sandbox_timeout(struct http_req *req)
{
    struct e2b_req *q = e2b_of(req);
    struct sandbox *b = e2b_sandbox(q);
    int32_t seconds = field_int(&q->in, "timeout", 0);

    if (!field_get(&q->in, "timeout"))
        field_wrong(&q->in, "'timeout' is required");
    if (seconds < 0)
        field_wrong(&q->in, "'timeout' must not be negative");
    if (!b || !e2b_read(q))
        return;
    if (b->spec.context[0] && seconds > 0)
        path_set_timeout(q, b, (uint64_t)seconds * 1000);
    else
        move_end(q, b, (uint64_t)seconds * 1000, false);
}

void sandbox_refresh(struct http_req *req)
{
    struct e2b_req *q = e2b_of(req);
    struct sandbox *b = e2b_sandbox(q);
    uint64_t seconds = field_count(&q->in, "duration", 0, REFRESH_MAX_S, REFRESH_MIN_S);

    if (b && e2b_read(q))
        move_end(q, b, (seconds < REFRESH_MIN_S ? REFRESH_MIN_S : seconds) * 1000, true);
}

/* ---- pause and resume ------------------------------------------------------------------------ */

void e2b_sandbox_pause(struct http_req *req)
{
    struct e2b_req *q = e2b_of(req);
    struct sandbox *b = e2b_sandbox(q);
    bool memory = field_flag(&q->in, "memory", true);

    if (!b || !e2b_read(q))
        return;
    e2b_wait(q);
    sandbox_pause(b, memory, e2b_done_empty, q);
}

static void answer(struct e2b_req *q, int status, struct sandbox *b, int r,
                   const struct sg_error *e)
{
    if (e2b_done(q, r, e))
        sandbox_reply(q, status, b);
}

static void on_resumed(void *arg, struct sandbox *b, int r, const struct sg_error *e)
{
    answer(arg, 201, b, r, e);
}

void e2b_sandbox_resume(struct http_req *req)
{
    struct e2b_req *q = e2b_of(req);
    struct sandbox *b = e2b_sandbox(q);
    uint64_t timeout_ms =
        field_timeout(&q->in, 1, SPEC_TIMEOUT_V1_S, q->front->settings.max_timeout_ms);
    bool memory = field_flag(&q->in, "memory", true);
    bool auto_pause = field_flag(&q->in, "autoPause", b && b->spec.auto_pause);

    if (!b || !e2b_read(q))
        return;
    if (b->state == SANDBOX_PAUSED) /* what the next timeout will do */
        b->spec.auto_pause = auto_pause;
    e2b_wait(q);
    sandbox_resume(b, memory, timeout_ms, on_resumed, q);
}

/* ---- connect --------------------------------------------------------------------------------- */

static void on_extended(void *arg, struct sandbox *b, int r, const struct sg_error *e)
{
    const struct e2b_req *q = arg;

    if (r == 0 && q->http && request_log_of(q->http))
        figure_observe(FIG_RECONNECT, "running", clock_ns() - request_log_of(q->http)->began_ns);
    answer(arg, 200, b, r, e);
}

static void extend_and_reply(struct e2b_req *q, struct sandbox *b, uint64_t timeout_ms)
{
    if (clamp_timeout(q, b, &timeout_ms))
        set_end(q, b, timeout_ms, true, on_extended);
}

/* If somebody else's resume was faster, the sandbox runs, and this request connects to it. */
static void on_connected(void *arg, struct sandbox *b, int r, const struct sg_error *e)
{
    if (r == -EALREADY)
        answer(arg, 200, b, 0, NULL);
    else
        answer(arg, 201, b, r, e);
}

static void connect_to(struct e2b_req *q, uint32_t default_s)
{
    struct sandbox *b = e2b_sandbox(q);
    uint64_t timeout_ms = field_timeout(&q->in, 0, default_s, q->front->settings.max_timeout_ms);
    bool memory = field_flag(&q->in, "memory", true);

    if (!b || !e2b_read(q))
        return;
    if (b->state == SANDBOX_RUNNING && b->busy != BUSY_PAUSING) {
        extend_and_reply(q, b, timeout_ms);
    } else {
        e2b_wait(q);
        sandbox_resume(b, memory, timeout_ms, on_connected, q);
    }
}

void sandbox_connect_v1(struct http_req *req)
{
    connect_to(e2b_of(req), SPEC_TIMEOUT_V1_S);
}

void sandbox_connect_v2(struct http_req *req)
{
    connect_to(e2b_of(req), SPEC_TIMEOUT_V2_S);
}
