#include "front/core/figures.h"

#include <assert.h>
#include <string.h>
#include <strings.h>

#include "front/core/checkpoint.h"
#include "front/core/figures_told.h"
#include "front/core/news.h"
#include "front/core/reply.h"
#include "lib/log/log.h"
#include "wire/process_figures.h"
#include "front/telemetry/figures.h"

#define HOOKS_MAX 8
#define TEXT_TYPE "text/plain; version=0.0.4; charset=utf-8"
#define BEARER    "Bearer "

/* A request that waits for the figures. */
struct scrape {
    struct http_req *req;
    struct list link;
};

static struct {
    struct front *front;
    uv_timer_t timer;
    bool under_way;
    struct list waiting;
    void (*hooks[HOOKS_MAX])(struct front *f);
    size_t n_hooks;
    struct http_server *server; /* for metrics_listen; NULL: none */
} all;

/* ---- what is known here ---------------------------------------------------------------------- */

static void set_own(struct front *f)
{
    unsigned running = 0, paused = 0, stored = 0;
    struct order_process p;
    uint64_t written, suppressed;

    SANDBOXES_EACH(b, f) {
        running += b->state == SANDBOX_RUNNING && !b->spec.standby;
        paused += b->state == SANDBOX_PAUSED && !b->stored;
        stored += b->state == SANDBOX_PAUSED && b->stored;
    }
    figure_set(FIG_SANDBOXES, "running", running);
    figure_set(FIG_SANDBOXES, "paused", paused);
    figure_set(FIG_SANDBOXES, "stored", stored);
    figure_set(FIG_CHECKPOINTS, NULL, (double)checkpoints_count(f));
    log_counts(&written, &suppressed);
    figure_total(FIG_LOG_LINES, "written", (double)written);
    figure_total(FIG_LOG_LINES, "suppressed", (double)suppressed);
    process_figures(&p);
    figures_set_process("front", &p);
    figure_set(FIG_BUILD, SG_VERSION, 1);
    for (size_t i = 0; i < all.n_hooks; i++)
        all.hooks[i](f);
}

void figures_on_scrape(void (*fn)(struct front *f))
{
    assert(all.n_hooks < HOOKS_MAX);
    all.hooks[all.n_hooks++] = fn;
}

/* ---- one gathering --------------------------------------------------------------------------- */

static void on_client_gone(struct http_req *req)
{
    list_remove(&((struct scrape *)req->owner)->link);
}

static void finish(void)
{
    AUTO(strbuf_done) struct strbuf text = strbuf_upto(FIGURES_TEXT_MAX);

    uv_timer_stop(&all.timer);
    all.under_way = false;
    figures_told_close();
    set_own(all.front);
    if (list_empty(&all.waiting))
        return;
    figures_print(&text);
    for (struct scrape *s; (s = LIST_POP(struct scrape, &all.waiting, link));) {
        struct http_req *req = s->req;

        req->owner = NULL;
        req->on_close = NULL;
        http_reply(req, 200, TEXT_TYPE, text.buf, text.len);
    }
}

static void on_told(void)
{
    if (all.under_way && figures_told_all())
        finish();
}

static void on_late(uv_timer_t *timer UNUSED)
{
    finish();
}

static void gather(struct front *f)
{
    if (!all.front) {
        all.front = f;
        uv_timer_init(f->loop, &all.timer);
    }
    if (all.under_way)
        return;
    all.under_way = true;
    uv_timer_start(&all.timer, on_late, SCRAPE_MS, 0);
    figures_told_ask(f, on_told);
}

void figures_start(struct front *f)
{
    egress_news_start();
    gather(f);
}

/* ---- requests -------------------------------------------------------------------------------- */

static bool is_reading(struct http_req *req)
{
    if (req->method == HTTP_M_GET || req->method == HTTP_M_HEAD)
        return true;
    http_add_header(req, "Allow", "GET, HEAD");
    reply_error(req, 405, "/metrics can only be read: use GET");
    return false;
}

static void answer(struct http_req *req)
{
    struct scrape *s = http_req_alloc(req, sizeof(*s));

    *s = (struct scrape){.req = req};
    list_push(&all.waiting, &s->link);
    req->owner = s;
    req->on_close = on_client_gone;
    gather(front_of(req));
}

void metrics_answer(struct http_req *req)
{
    const struct hidden *token = &front_of(req)->settings.metrics_token;
    const char *given = http_header_get(req, "authorization");
    size_t prefix = strlen(BEARER);

    if (hidden_empty(token)) {
        reply_error(req, 404,
                    "there are no metrics here: set metrics_token to read them with it as a bearer "
                    "token, or metrics_listen to have them on an address of their own");
    } else if (!given || strncasecmp(given, BEARER, prefix) != 0 ||
               !hidden_equals(token, given + prefix, strlen(given + prefix))) {
        http_add_header(req, "WWW-Authenticate", "Bearer");
        reply_error(req, 401, "/metrics needs the setting metrics_token as a bearer token");
    } else if (is_reading(req)) {
        answer(req);
    }
}

static void metrics_request(struct http_req *req)
{
    static const char hint[] = "The metrics of this Sandglass server are at /metrics.\n";

    if (strcmp(req->path, "/metrics") == 0) {
        if (is_reading(req))
            answer(req);
    } else if (strcmp(req->path, "/") == 0 && is_reading(req)) {
        http_reply(req, 200, "text/plain; charset=utf-8", hint, strlen(hint));
    } else if (strcmp(req->path, "/") != 0) {
        reply_error(req, 404, "there is nothing but /metrics on this address");
    }
}

int metrics_listen(struct front *f, int fd, struct sg_error *e)
{
    static struct http_limits limits = HTTP_LIMITS_DEFAULT;

    limits.conns_max = 256;
    limits.conns_per_ip = 64;
    if (!all.server)
        all.server = http_server_new(f->loop, &limits, metrics_request, f);
    return http_server_listen(all.server, fd, HTTP_PLAIN, e);
}
