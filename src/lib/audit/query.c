/* Answers queries, from the newest line to the oldest, over all chains that could have a match. All
 * chains share one sequence of numbers, so the highest number is the newest. */
#include <strings.h>

#include "lib/audit/audit_impl.h"

/* The wall clock may have been set back, so the search goes on for so long before the query's
 * beginning. */
#define CLOCK_SLACK_MS 3600000

/* One chain, and its newest line that was not judged yet. */
struct source {
    struct audit_back back;
    const char *text;
    size_t len;
    struct audit_line line;
    bool there;
};

struct query {
    const struct audit_filter *f;
    struct source *sources;
    size_t n;
    char from[AUDIT_TIME_LEN + 1], to[AUDIT_TIME_LEN + 1], give_up[AUDIT_TIME_LEN + 1];
};

static bool text_is(const char *line, size_t len, const char *key, const char *want)
{
    size_t n = 0;
    const char *value;

    if (!want)
        return true;
    value = audit_line_text(line, len, key, &n);
    return value && strlen(want) == n && memcmp(value, want, n) == 0;
}

static bool name_is(const char *line, size_t len, const char *want)
{
    size_t n = 0, w;
    const char *value;

    if (!want)
        return true;
    value = audit_line_text(line, len, "name", &n);
    if (!value)
        return false;
    w = strlen(want);
    if (want[0] != '*' || want[1] != '.')
        return n == w && strncasecmp(value, want, n) == 0;
    /* "*.x": the name must end in ".x" and have something before it. */
    return n > w - 1 && strncasecmp(value + n - (w - 1), want + 1, w - 1) == 0;
}

static bool is_wanted(const struct query *q, const struct source *s)
{
    const struct audit_filter *f = q->f;
    const struct audit_line *l = &s->line;

    return (!f->before || l->seq < f->before) &&
           (!f->from_ms || memcmp(l->time, q->from, AUDIT_TIME_LEN) >= 0) &&
           (!f->to_ms || memcmp(l->time, q->to, AUDIT_TIME_LEN) <= 0) &&
           text_is(s->text, l->hashed, "tenant", f->tenant) &&
           text_is(s->text, l->hashed, "sandbox", f->sandbox) &&
           text_is(s->text, l->hashed, "kind", f->kind) &&
           text_is(s->text, l->hashed, "verdict", f->verdict) &&
           name_is(s->text, l->hashed, f->name);
}

/* Moves on to the next line of the chain that is one of ours. */
static int advance(struct query *q, struct source *s, struct sg_error *e)
{
    int r;

    do
        r = audit_back_next(&s->back, &s->text, &s->len, e);
    while (r > 0 && audit_line_read(s->text, s->len, &s->line) < 0);
    s->there = r > 0 && !(q->f->from_ms && memcmp(s->line.time, q->give_up, AUDIT_TIME_LEN) < 0);
    return r < 0 ? r : 0;
}

static struct source *newest(struct query *q)
{
    struct source *found = NULL;

    for (size_t i = 0; i < q->n; i++)
        if (q->sources[i].there && (!found || q->sources[i].line.seq > found->line.seq))
            found = &q->sources[i];
    return found;
}

/* Adds a chain to the search, if it exists. */
static int add_source(struct query *q, int dirfd, const char *tenant, struct sg_error *e)
{
    int dir = audit_tenant_open(dirfd, tenant);
    struct source *s = &q->sources[q->n];
    int r;

    if (dir == -ENOENT && tenant[0])
        return 0;
    if (dir < 0)
        return err_code(e, dir, "open the folder '%s' of the record", tenant);
    q->n++;
    r = audit_back_open(&s->back, dir, q->f->before, e);
    return r < 0 ? r : advance(q, s, e);
}

/* The top chain is searched too: it has the records that belong to no tenant, and all records of
 * versions that had no other chain. */
static int add_sources(struct query *q, int dirfd, struct sg_error *e)
{
    AUTO(free_p) char(*tenants)[ID_LEN + 1] = NULL;
    const char *one = q->f->tenant;
    size_t n = 0;
    int r = one ? 0 : audit_tenants(dirfd, &tenants, &n, e);

    q->sources = xcalloc(n + 2, sizeof(*q->sources));
    if (r == 0)
        r = add_source(q, dirfd, "", e);
    if (r == 0 && one && id_valid(one))
        r = add_source(q, dirfd, one, e);
    for (size_t i = 0; r == 0 && i < n; i++)
        r = add_source(q, dirfd, tenants[i], e);
    return r;
}

int audit_query(int dirfd, const struct audit_filter *f,
                bool (*fn)(const char *line, size_t len, uint64_t seq, void *arg), void *arg,
                struct sg_error *e)
{
    struct query q = {.f = f};
    int64_t give_up = f->from_ms > CLOCK_SLACK_MS ? f->from_ms - CLOCK_SLACK_MS : 0;
    uint32_t found = 0;
    struct source *s;
    int r;

    clock_text(f->from_ms, q.from);
    clock_text(f->to_ms, q.to);
    clock_text(give_up, q.give_up);
    r = add_sources(&q, dirfd, e);
    while (r == 0 && (s = newest(&q))) {
        if (is_wanted(&q, s) &&
            (!fn(s->text, s->len, s->line.seq, arg) || (f->limit > 0 && ++found >= f->limit)))
            break;
        r = advance(&q, s, e);
    }
    for (size_t i = 0; i < q.n; i++)
        audit_back_done(&q.sources[i].back);
    free(q.sources);
    return r;
}
