#include "guard/news.h"

#include "lib/base/clock.h"
#include "guard/front_link.h"
#include "lib/uv/handle.h"

#define NEWS_MAX (GUARD_PAYLOAD_MAX / sizeof(struct egress_news))

struct guard_news {
    struct guard *guard;
    uv_timer_t *timer;
    size_t n;
    struct egress_news at[NEWS_MAX];
};

static void on_timer(uv_timer_t *t);

static void wait_for_more(struct guard_news *w)
{
    if (!uv_is_active((uv_handle_t *)w->timer))
        alarm_set(w->timer, EGRESS_NEWS_MS * 1000000ull, on_timer);
}

static void flush(struct guard_news *w)
{
    if (w->n == 0)
        return;
    if (front_link_tell(w->guard, ASK_NEWS, w->at, w->n * sizeof(w->at[0])))
        w->n = 0;
    else
        wait_for_more(w);
}

static void on_timer(uv_timer_t *t)
{
    flush(t->data);
}

static struct guard_news *news_of(struct guard *g)
{
    if (!g->news) {
        g->news = xcalloc(1, sizeof(*g->news));
        g->news->guard = g;
        g->news->timer = alarm_new(g->loop, g->news);
    }
    return g->news;
}

/* ---- one entry ------------------------------------------------------------------------------- */

/* Whether the front is told of a decision: not of questions that were allowed, nor of DNS
 * connections, which the guard answers itself. */
static bool is_news(const struct decision *d)
{
    if (strcmp(d->kind, "flow") == 0)
        return !d->protocol || strcmp(d->protocol, "dns") != 0;
    return !d->allowed && (strcmp(d->kind, "dns") == 0 || strcmp(d->kind, "request") == 0);
}

/* A flow whose sandbox ended before anything was decided was not refused: it has failed. */
static enum egress_verdict verdict_of(const struct decision *d)
{
    if (!d->allowed)
        return d->rule ? VERDICT_BLOCKED : VERDICT_FAILED;
    return d->detail && d->down == 0 ? VERDICT_FAILED : VERDICT_ALLOWED;
}

/* The protocol as the front is told it: a TCP connection is "tcp", inspected or not. */
static const char *protocol_of(const struct decision *d)
{
    if (strcmp(d->kind, "flow") != 0)
        return strcmp(d->kind, "dns") == 0 ? "dns" : "http";
    return d->protocol && strcmp(d->protocol, "udp") == 0 ? "udp" : "tcp";
}

static void fill(struct egress_news *n, const struct sandbox *s, const struct decision *d)
{
    char address[NET_ADDR_TEXT_MAX] = "";
    const char *why = d->allowed && d->detail ? d->detail : d->rule ? d->rule : d->detail;

    *n = (struct egress_news){.verdict = (uint8_t)verdict_of(d),
                              .took_ms = d->ms < UINT32_MAX ? (uint32_t)d->ms : UINT32_MAX,
                              .up = d->up,
                              .down = d->down,
                              .ended_ms = clock_wall_ms()};
    if (d->address) {
        net_addr_text(d->address, address);
        n->port = d->address->port;
    }
    memcpy(n->id, s->id, sizeof(n->id));
    memcpy(n->tenant, s->tenant, sizeof(n->tenant));
    snprintf(n->protocol, sizeof(n->protocol), "%s", protocol_of(d));
    snprintf(n->target, sizeof(n->target), "%.127s", d->name ? d->name : address);
    snprintf(n->why, sizeof(n->why), "%.63s", why ? why : "");
}

/* ---- gathering ------------------------------------------------------------------------------- */

/* The entry that takes the bytes of a sandbox when the list is full: its own, or else one without
 * bytes, which is replaced. NULL: there is neither. */
static struct egress_news *place_in_full(struct guard_news *w, const char *id, bool *ret_same)
{
    struct egress_news *empty = NULL;

    for (size_t i = w->n; i > 0; i--) {
        struct egress_news *n = &w->at[i - 1];

        *ret_same = strcmp(n->id, id) == 0;
        if (*ret_same)
            return n;
        if (n->up == 0 && n->down == 0)
            empty = n;
    }
    return empty;
}

/* Keeps the bytes of an entry that has no room in the list: only they matter. */
static void squeeze_in(struct guard_news *w, struct sandbox *s, const struct egress_news *n)
{
    bool same = false;
    struct egress_news *place = place_in_full(w, s->id, &same);

    if (n->up == 0 && n->down == 0)
        return;
    if (!place) {
        s->untold_up = n->up;
        s->untold_down = n->down;
    } else if (same) {
        place->up += n->up;
        place->down += n->down;
    } else {
        *place = *n;
    }
}

void news_gather(struct sandbox *s, const struct decision *d)
{
    struct egress_news n;

    if (!s->guard->front || !is_news(d))
        return;
    struct guard_news *w = news_of(s->guard);
    fill(&n, s, d);
    n.up += s->untold_up;
    n.down += s->untold_down;
    s->untold_up = s->untold_down = 0;
    if (w->n == NEWS_MAX)
        flush(w);
    if (w->n == NEWS_MAX)
        squeeze_in(w, s, &n);
    else
        w->at[w->n++] = n;
    wait_for_more(w);
}
