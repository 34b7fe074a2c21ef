#include "cli/client/repl_life.h"

#include "lib/base/clock.h"
#include "lib/command/ui.h"
#include "cli/client/api.h"
#include "cli/client/jr.h"
#include "cli/client/payload.h"
#include "cli/client/repl_kernel.h"

#define NS_PER_S     1000000000ull
#define LOOK_AGAIN_S 5 /* how often we ask about a sandbox whose time should be over */
#define EXTEND_PARTS 4 /* extend its time when one of so many parts of it has passed */

uint64_t repl_life_timeout_s(const struct repl_life *l)
{
    return l->options->timeout_s ? l->options->timeout_s : REPL_TIMEOUT_S;
}

static void extended(void *arg, CURLcode code, const struct web_reply *reply)
{
    struct repl_life *l = arg;

    if (code == CURLE_OK && reply->status == 404)
        l->gone = true;
}

void repl_life_init(struct repl_life *l, struct client *client, struct repl_watch *watch,
                    const struct repl_options *options)
{
    *l = (struct repl_life){.client = client, .options = options};
    repl_call_init(&l->call, watch);
    l->call.finished = extended;
    l->call.arg = l;
}

/* ---- begin ----------------------------------------------------------------------------------- */

static int create(struct repl_life *l, char **ret_id, struct sg_error *e)
{
    AUTO(jr_free_p) json_t *sandbox = NULL;
    struct payload_create b = {
        .template = REPL_TEMPLATE, .timeout_s = repl_life_timeout_s(l), .env = &l->options->env};

    int r = sandbox_create(l->client, &b, &sandbox, e);
    if (r == 0)
        *ret_id = xstrdup(jr_text(sandbox, "sandboxID"));
    return r;
}

int repl_life_begin(struct repl_life *l, bool fresh, struct sg_error *e)
{
    AUTO(free_p) char *id = NULL;
    bool own = fresh || !l->options->id;
    int r = 0;

    if (own)
        r = create(l, &id, e);
    else
        id = xstrdup(l->options->id);
    if (r < 0)
        return r;
    repl_life_end(l);
    l->id = steal_ptr(&id);
    l->own = own;
    if (own || l->options->timeout_s)
        l->extended_ns = clock_ns();
    r = sandbox_open_port(&l->sandbox, l->client, l->id, REPL_PORT, e);
    if (r < 0)
        repl_life_end(l);
    else if (!own && l->options->timeout_s)
        l->extended_ns = 1; /* long ago, so that the first key or cell extends its time */
    return r;
}

/* ---- while it lives -------------------------------------------------------------------------- */

/* Extends the sandbox's time. The call is connect, because it never makes the remaining time
 * shorter. */
static void extend(struct repl_life *l)
{
    struct settings *s = &l->client->settings;
    struct curl_slist *headers = NULL;
    struct strbuf url, body;

    strbuf_init(&url, API_PATH_MAX);
    strbuf_addf(&url, "%s/sandboxes/%s/connect", s->api_url, l->id);
    payload_timeout(&body, repl_life_timeout_s(l));
    if (s->api_key)
        web_add_header(&headers, "X-API-KEY", s->api_key);
    web_add_header(&headers, "Content-Type", "application/json");
    repl_call_post(&l->call, &url, &body, &headers);
}

void repl_life_touch(struct repl_life *l)
{
    uint64_t now = clock_ns();

    if (!l->extended_ns || l->gone || l->call.busy || l->client->settings.debug ||
        now - l->extended_ns < repl_life_timeout_s(l) * NS_PER_S / EXTEND_PARTS)
        return;
    l->extended_ns = now;
    extend(l);
}

bool repl_life_is_over(struct repl_life *l)
{
    uint64_t now = clock_ns();
    struct sg_error e;

    if (l->gone || !l->extended_ns || now - l->extended_ns < repl_life_timeout_s(l) * NS_PER_S ||
        now - l->looked_ns < LOOK_AGAIN_S * NS_PER_S)
        return false;
    l->looked_ns = now;
    l->gone = api_get(l->client, NULL, &e, "/sandboxes/%s", l->id) == -ENOENT;
    return l->gone;
}

/* ---- end ------------------------------------------------------------------------------------- */

void repl_life_end(struct repl_life *l)
{
    struct sg_error e;

    if (l->id && l->own && !l->options->keep && !l->gone) {
        int r = api_call(l->client, "DELETE", NULL, NULL, &e, "/sandboxes/%s", l->id);
        if (r < 0 && r != -ENOENT)
            ui_error("sandbox %s could not be ended: %s", l->id, e.message);
    }
    sandbox_close(&l->sandbox);
    free(l->id);
    l->id = NULL;
    l->gone = l->own = false;
    l->extended_ns = 0;
}

void repl_life_done(struct repl_life *l)
{
    repl_life_end(l);
    repl_call_done(&l->call);
}
