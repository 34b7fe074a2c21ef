#include "lib/base/clock.h"
#include "lib/text/json.h"
#include "lib/command/ui.h"
#include "cli/client/repl_watch.h"
#include "cli/client/repl_kernel.h"
#include "cli/client/payload.h"

#define TURN_MS        1000
#define LAST_MS        1000  /* time for the transfer to end after the cell has ended */
#define AGAIN_MS       2000  /* a second ^C within this time leaves the cell */
#define SILENCE_MAX_MS 60000 /* a server sends a sign of life every 5 s */
#define REFUSAL_MAX    (64u * 1024)
#define NS_PER_MS      1000000ull

struct run {
    struct repl_transfer transfer;
    struct repl_watch *watch;
    struct sandbox *sandbox;
    const struct repl_cell *cell;
    CURL *easy;
    struct strbuf url, body;
    struct curl_slist *headers;
    struct repl_call interrupt;

    struct strbuf line;       /* the beginning of an event */
    struct web_reply refusal; /* an answer that refuses the cell */
    uint64_t heard_ns, interrupted_ns;
    bool ended; /* the cell has ended */
    bool over;  /* the transfer has ended; its connection can be used again */
    CURLcode code;
    int failure;
    struct sg_error error;
};

static int take_event(void *arg, const struct repl_event *event, struct sg_error *e)
{
    struct run *run = arg;

    run->ended |= event->kind == REPL_EVENT_END;
    return run->cell->event(run->cell->arg, event, e);
}

static size_t take_bytes(char *data, size_t size, size_t n, void *arg)
{
    struct run *run = arg;

    run->heard_ns = clock_ns();
    if (run->refusal.status == 0)
        curl_easy_getinfo(run->easy, CURLINFO_RESPONSE_CODE, &run->refusal.status);
    if (run->refusal.status != 200) {
        strbuf_add(&run->refusal.body, data, size * n);
        return size * n;
    }
    run->failure = repl_events_feed(&run->line, data, size * n, take_event, run, &run->error);
    return run->failure < 0 ? 0 : size * n;
}

static void stream_done(struct repl_transfer *t, CURLcode code)
{
    struct run *run = CONTAINER_OF(t, struct run, transfer);

    run->over = true;
    run->code = code;
}

static void make_body(struct strbuf *body, const struct repl_cell *cell)
{
    struct json j = {.out = body};

    strbuf_init(body, PAYLOAD_MAX);
    jw_object_begin(&j);
    jw_bytes(jw_key(&j, "code"), cell->code, cell->len);
    jw_string(jw_key(&j, "context_id"), cell->context);
    jw_object_end(&j);
}

static void begin(struct run *run)
{
    sandbox_api_url(run->sandbox, &run->url, "execute");
    run->headers = sandbox_headers(run->sandbox, "application/json");
    struct web_request q = {
        .method = "POST", .url = run->url.buf, .headers = run->headers, .body = &run->body};
    web_prepare(run->easy, &q);
    curl_easy_setopt(run->easy, CURLOPT_WRITEFUNCTION, take_bytes);
    curl_easy_setopt(run->easy, CURLOPT_WRITEDATA, run);
    repl_watch_add(run->watch, run->easy, &run->transfer);
}

/* ---- ^C -------------------------------------------------------------------------------------- */

static void send_interrupt(struct run *run)
{
    struct strbuf url, path, body;
    struct curl_slist *headers = sandbox_headers(run->sandbox, "application/json");

    if (run->interrupt.busy)
        return web_headers_done(&headers);
    strbuf_init(&path, 512);
    strbuf_addf(&path, "contexts/%s/interrupt", run->cell->context);
    sandbox_api_url(run->sandbox, &url, path.buf);
    strbuf_done(&path);
    strbuf_init(&body, 16);
    repl_call_post(&run->interrupt, &url, &body, &headers);
}

/* A server without interrupts, such as E2B's own, stops a cell when its client goes away: so we
 * leave. */
static void interrupt_finished(void *arg, CURLcode code, const struct web_reply *reply)
{
    struct run *run = arg;

    if (code == CURLE_OK && (reply->status == 404 || reply->status == 405) && !run->over)
        run->failure = err_set(&run->error, SG_ERR_GONE, -ECANCELED, "interrupted");
}

static void take_interrupt(struct run *run)
{
    uint64_t now = clock_ns();

    run->cell->interrupted(run->cell->arg);
    if (run->interrupted_ns && now - run->interrupted_ns < AGAIN_MS * NS_PER_MS) {
        run->failure = err_set(&run->error, SG_ERR_GONE, -ECANCELED, "left the cell");
        return;
    }
    run->interrupted_ns = now;
    send_interrupt(run);
}

/* ---- from begin to end ----------------------------------------------------------------------- */

static void loop(struct run *run)
{
    uint64_t ticked_ns = clock_ns();

    while (!run->over && run->failure == 0) {
        struct repl_turn turn = repl_watch_turn(run->watch, -1, TURN_MS);
        uint64_t now = clock_ns();

        if (run->over || run->failure < 0)
            return;
        if (run->ended && now - run->heard_ns > LAST_MS * NS_PER_MS)
            return;
        if (run->watch->ending)
            run->failure = err_set(&run->error, SG_ERR_INTERNAL, -EINTR, "interrupted");
        else if (turn.interrupt)
            take_interrupt(run);
        else if (now - run->heard_ns > SILENCE_MAX_MS * NS_PER_MS)
            run->failure =
                err_set(&run->error, SG_ERR_GONE, -EHOSTUNREACH, "the server has stopped sending");
        if (now - ticked_ns > TURN_MS * NS_PER_MS) {
            ticked_ns = now;
            run->cell->tick(run->cell->arg);
        }
    }
}

static int outcome(struct run *run, struct sg_error *e)
{
    if (run->ended)
        return 0;
    if (run->failure < 0) {
        *e = run->error;
        return run->failure;
    }
    curl_easy_getinfo(run->easy, CURLINFO_RESPONSE_CODE, &run->refusal.status);
    if (run->code == CURLE_OK && run->refusal.status != 200)
        return repl_refusal(run->sandbox, &run->refusal, e);
    if (run->code != CURLE_OK)
        return web_result(run->easy, run->code, run->url.buf, e);
    return err_set(e, SG_ERR_INTERNAL, -EPROTO, "the server did not report how the cell ended");
}

int repl_cell_run(struct repl_watch *watch, struct sandbox *sandbox, const struct repl_cell *cell,
                  struct sg_error *e)
{
    struct run run = {
        .transfer.done = stream_done, .watch = watch, .sandbox = sandbox, .cell = cell};
    int r;

    make_body(&run.body, cell);
    if (run.body.truncated) {
        strbuf_done(&run.body);
        return err_set(e, SG_ERR_LIMIT, -E2BIG, "the cell is too large: 16 MiB is the limit");
    }
    run.easy = curl_easy_init();
    if (!run.easy)
        abort();
    run.heard_ns = clock_ns();
    strbuf_init(&run.line, REPL_LINE_MAX);
    strbuf_init(&run.refusal.body, REFUSAL_MAX);
    repl_call_init(&run.interrupt, watch);
    run.interrupt.finished = interrupt_finished;
    run.interrupt.arg = &run;
    begin(&run);
    loop(&run);
    r = outcome(&run, e);

    if (!run.over)
        curl_multi_remove_handle(watch->multi, run.easy);
    repl_call_done(&run.interrupt);
    curl_easy_cleanup(run.easy);
    web_headers_done(&run.headers);
    web_reply_done(&run.refusal);
    strbuf_done(&run.line);
    strbuf_done(&run.url);
    strbuf_done(&run.body);
    return r;
}
