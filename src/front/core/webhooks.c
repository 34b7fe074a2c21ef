#include "front/core/webhooks.h"

#include <inttypes.h>
#include <openssl/hmac.h>
#include <openssl/sha.h>
#include <stdio.h>
#include <string.h>

#include "front/core/e2b_event.h"
#include "front/telemetry/exporter.h"
#include "lib/base/clock.h"
#include "lib/log/log.h"
#include "lib/text/base64.h"
#include "lib/web/hosts.h"

/* A tenant's. */
struct hook {
    struct poster poster;
    char url[WEBHOOK_URL_MAX + 1];
    struct hidden secret;
};

static struct {
    struct front *front;
    struct exporter *exporter;
    struct poster own; /* the operator's */
    char url[sizeof(((struct settings *)0)->webhook_url)];
    struct event_watch watch;
} hooks;

/* ---- posts ----------------------------------------------------------------------------------- */

/* Sets a header to a text that is no secret; headers hold struct hidden. */
static void set_header(struct exporter_header *h, const char *name, struct hidden *value,
                       const char *text)
{
    hidden_set(value, text, strlen(text));
    *h = (struct exporter_header){name, value};
}

static void sign(const struct hidden *secret, const char *json, struct strbuf *ret)
{
    AUTO(strbuf_done) struct strbuf text = strbuf_upto(strlen(json) + 32);
    unsigned char mac[EVP_MAX_MD_SIZE];
    const char *key = hidden_reveal(secret);
    int64_t t = clock_wall_ms() / 1000;
    unsigned len = 0;

    strbuf_addf(&text, "%" PRId64 ".%s", t, json);
    if (!HMAC(EVP_sha256(), key, (int)strlen(key), (const unsigned char *)text.buf, text.len, mac,
              &len))
        abort(); /* no memory */
    strbuf_addf(ret, "t=%" PRId64 ",v1=", t);
    for (unsigned i = 0; i < len; i++)
        strbuf_addf(ret, "%02x", mac[i]);
}

static int post_own(struct poster *own, struct poster_slot *slot, const struct event *e)
{
    AUTO(strbuf_done) struct strbuf signature = strbuf_upto(128);
    const struct hidden *secret = &own->front->settings.webhook_secret;
    struct hidden values[3];
    char number[24];
    struct exporter_post p = {.url = hooks.url,
                              .content_type = "application/json",
                              .body = e->json,
                              .len = strlen(e->json),
                              .done = poster_posted,
                              .arg = slot};

    snprintf(number, sizeof(number), "%" PRIu64, e->id);
    set_header(&p.headers[0], "Sandglass-Event", &values[0], event_kind_text(e->kind));
    set_header(&p.headers[1], "Sandglass-Delivery", &values[1], number);
    if (!hidden_empty(secret)) {
        sign(secret, e->json, &signature);
        set_header(&p.headers[2], "Sandglass-Signature", &values[2], signature.buf);
    }
    return exporter_post(hooks.exporter, &p);
}

static void sign_e2b(const struct hidden *secret, const char *json, struct strbuf *ret)
{
    const char *key = hidden_reveal(secret);
    AUTO(strbuf_wipe) struct strbuf text = strbuf_upto(strlen(key) + strlen(json));
    unsigned char hash[SHA256_DIGEST_LENGTH];

    strbuf_reserve(&text);
    strbuf_addstr(&text, key);
    strbuf_addstr(&text, json);
    SHA256((const unsigned char *)text.buf, text.len, hash);
    base64_encode(ret, hash, sizeof(hash));
    while (ret->len > 0 && ret->buf[ret->len - 1] == '=')
        ret->buf[--ret->len] = '\0';
}

static int post_hook(struct poster *poster, struct poster_slot *slot, const struct event *e)
{
    AUTO(strbuf_done) struct strbuf signature = strbuf_upto(64);
    struct hook *h = CONTAINER_OF(poster, struct hook, poster);
    struct hidden values[4];
    char delivery[UUID_LEN + 1];
    bool inside;

    if (!e->e2b)
        return -ENOENT;
    json_t *told = e2b_event_read(e->e2b);
    AUTO(free_p) char *body = told ? json_dumps(told, JSON_COMPACT) : NULL;
    json_decref(told);
    if (!body)
        return -ENOENT;
    if (webhooks_judge(poster->front, h->url, &inside, NULL) < 0)
        return -EACCES;
    struct exporter_post p = {.url = h->url,
                              .content_type = "application/json",
                              .body = body,
                              .len = strlen(body),
                              .judged = !inside,
                              .done = poster_posted,
                              .arg = slot};
    uuid_random(delivery);
    sign_e2b(&h->secret, body, &signature);
    set_header(&p.headers[0], "e2b-webhook-id", &values[0], poster->id);
    set_header(&p.headers[1], "e2b-delivery-id", &values[1], delivery);
    set_header(&p.headers[2], "e2b-signature-version", &values[2], "v1");
    set_header(&p.headers[3], "e2b-signature", &values[3], signature.buf);
    return exporter_post(hooks.exporter, &p);
}

static void on_event(struct event_watch *w UNUSED, const struct event *e)
{
    /* Sent from the loop, not in the middle of the operation that the event is about. */
    POSTERS_EACH(p)
    if (!p->tenant[0] || strcmp(p->tenant, e->tenant) == 0)
        poster_wake(p);
}

/* ---- the operator's -------------------------------------------------------------------------- */

static bool read_kinds(const struct settings *s, uint32_t *ret)
{
    struct sg_error e = {0};

    if (event_types_parse("webhook_events", s->webhook_events[0] ? s->webhook_events : "*", ret,
                          &e) == 0)
        return true;
    log_line(LEVEL_ERROR, "no events are posted: %s", e.message);
    return false;
}

void webhooks_configure(struct front *f)
{
    const struct settings *s = &f->settings;
    struct poster *own = &hooks.own;
    bool was_on = own->on;

    if (!hooks.front)
        return;
    own->on = s->webhook_url[0] && hooks.exporter && read_kinds(s, &own->kinds);
    if (!own->on) {
        poster_stop(own);
        return;
    }
    if (hidden_empty(&s->webhook_secret))
        log_line(LEVEL_WARN, "webhook_secret is not set: events are posted without a signature");
    if (!was_on && own->begun == 0)
        poster_begin_here(own);
    if (strcmp(hooks.url, s->webhook_url) != 0) {
        if (hooks.url[0])
            poster_try_anew(own);
        memcpy(hooks.url, s->webhook_url, sizeof(hooks.url));
    }
    poster_go_on(own);
}

static void own_gone(struct poster *p UNUSED)
{
}

/* ---- tenants' -------------------------------------------------------------------------------- */

int webhooks_judge(const struct front *f, const char *url, bool *ret_inside, struct sg_error *e)
{
    AUTO(url_done) struct url u = {0};
    int r = url_parse(url, &u, e);

    *ret_inside = false;
    return r < 0
               ? r
               : hosts_judge(f->settings.webhook_targets, "target of webhooks", &u, ret_inside, e);
}

static void hook_gone(struct poster *p)
{
    struct hook *h = CONTAINER_OF(p, struct hook, poster);

    hidden_wipe(&h->secret);
    free(h);
}

static struct hook *find(const char *id)
{
    POSTERS_EACH(p)
    if (p->id[0] && strcmp(p->id, id) == 0)
        return CONTAINER_OF(p, struct hook, poster);
    return NULL;
}

static struct hook *add(const struct store_hook *s)
{
    struct hook *h = xcalloc(1, sizeof(*h));

    h->poster.front = hooks.front;
    h->poster.post = post_hook;
    h->poster.gone = hook_gone;
    memcpy(h->poster.id, s->id, sizeof(s->id));
    memcpy(h->poster.tenant, s->tenant, sizeof(s->tenant));
    poster_start(&h->poster);
    return h;
}

/* Where the poster goes on is not read here: the store is in use. */
static void apply(const struct store_hook *s, void *arg)
{
    struct hook **ret = arg, *h = find(s->id);
    bool elsewhere = h && strcmp(h->url, s->url) != 0;

    if (!h)
        h = add(s);
    h->poster.kinds = e2b_event_kinds(s->events);
    snprintf(h->url, sizeof(h->url), "%s", s->url);
    hidden_set(&h->secret, s->secret, strlen(s->secret));
    if (elsewhere)
        poster_try_anew(&h->poster);
    h->poster.on = s->enabled;
    if (ret)
        *ret = h;
}

void webhooks_changed(struct front *f, const char *tenant, const char *id)
{
    struct hook *h = find(id);
    bool was_on = h && h->poster.on;

    if (!hooks.front)
        return;
    if (store_hook_get(f->store, tenant, id, apply, &h, NULL) == -ENOENT) {
        if (h)
            poster_drop(&h->poster);
        return;
    }
    if (!h)
        return;
    if (!h->poster.on) {
        poster_stop(&h->poster);
        return;
    }
    if (!was_on)
        poster_begin_here(&h->poster);
    poster_go_on(&h->poster);
}

static void load_all(struct front *f)
{
    struct sg_error e;

    POSTERS_EACH(p)
    if (p->id[0])
        poster_drop(p);
    if (store_hooks_each(f->store, NULL, apply, NULL, &e) < 0)
        log_line(LEVEL_ERROR, "tenants' webhooks cannot be read, no events are posted to them: %s",
                 e.message);
    POSTERS_EACH(p)
    {
        if (!p->id[0] || !p->on)
            continue;
        if (!poster_take_up(p))
            poster_begin_here(p);
        poster_go_on(p);
    }
}

/* ---- from start to end ----------------------------------------------------------------------- */

void webhooks_start(struct front *f, struct exporter *h)
{
    if (hooks.front)
        poster_drop(&hooks.own);
    hooks.front = f;
    hooks.exporter = h;
    hooks.own = (struct poster){.front = f, .post = post_own, .gone = own_gone};
    poster_start(&hooks.own);
    events_unwatch(&hooks.watch);
    hooks.watch.on_event = on_event;
    events_watch(f, &hooks.watch);
    if (f->settings.webhook_url[0])
        poster_take_up(&hooks.own);
    webhooks_configure(f);
    load_all(f);
}

void webhooks_flush(void)
{
    if (hooks.front)
        posters_save();
}
