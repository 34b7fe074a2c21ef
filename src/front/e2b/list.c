/* The list of sandboxes: filtered, sorted by start time, page by page. */
#include "front/e2b/filter.h"
#include "front/e2b/page.h"
#include "front/e2b/sandbox.h"
#include "front/e2b/shape.h"
#include "front/e2b/template.h"

#define ANSWER_MAX (64u * 1024 * 1024) /* a page of the largest metadata */

struct list_query {
    const char *tenant;
    bool running, paused, ascending;
    json_t *metadata;             /* NULL: all */
    char template_id[ID_LEN + 1]; /* "": all */
    bool no_such_template;
    int64_t after_us;
};

struct found {
    const struct list_query *query;
    struct sandbox **sandboxes;
    size_t n, cap;
    size_t n_running;
};

static bool matches(const struct sandbox *b, const struct list_query *q)
{
    return strcmp(b->spec.tenant, q->tenant) == 0 &&
           (b->state == SANDBOX_RUNNING || b->state == SANDBOX_PAUSED) &&
           (shape_is_paused(b) ? q->paused : q->running) &&
           (!q->template_id[0] || strcmp(b->spec.template_id, q->template_id) == 0) &&
           b->spec.started_ms * 1000 >= q->after_us &&
           (!q->metadata || filter_matches(q->metadata, b->spec.metadata));
}

/* Sorts the newest first; sandboxes of the same time, by id. */
static int compare(int64_t at_a, const char *id_a, int64_t at_b, const char *id_b)
{
    return at_a != at_b ? (at_a > at_b ? -1 : 1) : strcmp(id_a, id_b);
}

static int compare_sandboxes(const void *x, const void *y, void *ascending)
{
    const struct sandbox *a = *(struct sandbox *const *)x, *b = *(struct sandbox *const *)y;
    int order = compare(a->spec.started_ms, a->id, b->spec.started_ms, b->id);

    return *(bool *)ascending ? -order : order;
}

static void find_sandboxes(struct front *front, struct found *f)
{
    bool ascending = f->query->ascending;

    SANDBOXES_EACH(b, front) {
        if (b->spec.build || b->spec.standby || !matches(b, f->query))
            continue;
        f->sandboxes = xgrow(f->sandboxes, f->n, &f->cap, sizeof(f->sandboxes[0]));
        f->sandboxes[f->n++] = b;
        f->n_running += !shape_is_paused(b);
    }
    if (f->n > 0)
        qsort_r(f->sandboxes, f->n, sizeof(*f->sandboxes), compare_sandboxes, &ascending);
}

/* The index of the first sandbox after the cursor. */
static size_t page_start(const struct found *f, const struct page *page)
{
    const struct page_cursor *c = &page->cursor;
    size_t i = 0;

    if (!page->has_cursor)
        return 0;
    for (; i < f->n; i++) {
        int order = compare(f->sandboxes[i]->spec.started_ms, f->sandboxes[i]->id, c->at, c->id);

        if (c->ascending ? order < 0 : order > 0)
            break;
    }
    return i;
}

static void write_sandboxes(struct http_req *req, struct sandbox **sandboxes, size_t n)
{
    AUTO(strbuf_done) struct strbuf out = strbuf_upto(ANSWER_MAX);
    struct json j = {.out = &out};

    jw_array_begin(&j);
    for (size_t i = 0; i < n; i++)
        shape_listed(&j, sandboxes[i]);
    jw_array_end(&j);
    reply_json(req, 200, &out);
}

static void reply_page(struct e2b_req *q, const struct list_query *query, const struct page *page)
{
    struct found f = {.query = query};
    char total[24];

    if (!query->no_such_template)
        find_sandboxes(q->front, &f);
    if (query->running) {
        snprintf(total, sizeof(total), "%zu", f.n_running);
        http_add_header(q->http, "X-Total-Running", total);
    }
    size_t first = page_start(&f, page), n = f.n - first;
    if (n > page->limit) {
        n = page->limit;
        const struct sandbox *last = f.sandboxes[first + n - 1];
        struct page_cursor next = {
            .at = last->spec.started_ms, .list = PAGE_SANDBOXES, .ascending = query->ascending};

        memcpy(next.id, last->id, sizeof(next.id));
        page_next(q, &next);
    }
    write_sandboxes(q->http, f.sandboxes ? f.sandboxes + first : NULL, n);
    free(f.sandboxes);
}

/* ---- the query ------------------------------------------------------------------------------- */

static bool parse_order(struct e2b_req *q)
{
    const char *text = http_query_get(q->http, "order");
    bool ascending = text && strcmp(text, "asc") == 0;

    if (text && !ascending && strcmp(text, "desc") != 0)
        fields_invalid(&q->in, "Invalid order parameter: unknown order \"%.40s\"", text);
    return ascending;
}

/* An unknown template is no error: no sandbox was made from it, so the list is empty. */
static int parse_template(struct e2b_req *q, const char *text, struct list_query *ret,
                          struct sg_error *e)
{
    struct template_ref ref;
    struct template_found t;
    int r = strchr(text, ':')
                ? err_invalid(e, "tags are not supported here because sandboxes are not "
                                 "tag-scoped")
                : template_ref_parse(text, &ref, e);

    if (r < 0)
        return err_wrap(e, r, "Invalid template");
    r = template_find(q->front->store, &q->tenant, &ref, &t, e);
    if (r == -ENOENT) {
        ret->no_such_template = true;
        return 0;
    }
    if (r == 0)
        memcpy(ret->template_id, t.id, sizeof(ret->template_id));
    return r;
}

static void parse_query(struct e2b_req *q, struct list_query *ret)
{
    const char *state = http_query_get(q->http, "state");
    const char *metadata = http_query_get(q->http, "metadata");
    const char *template = http_query_get(q->http, "template");
    const char *after = http_query_get(q->http, "startedAfter");

    ret->ascending = parse_order(q);
    if (state)
        fields_check(&q->in, filter_states(state, &ret->running, &ret->paused, &q->wrong));
    if (after)
        fields_check(&q->in, filter_time(after, &ret->after_us, &q->wrong));
    if (template)
        fields_check(&q->in, parse_template(q, template, ret, &q->wrong));
    if (metadata)
        fields_check(&q->in, filter_metadata(metadata, &ret->metadata, &q->wrong));
}

void sandboxes_list_v2(struct http_req *req)
{
    struct e2b_req *q = e2b_of(req);
    struct list_query query = {
        .tenant = q->tenant.id, .running = true, .paused = true, .after_us = INT64_MIN};
    struct page page;

    parse_query(q, &query);
    if (page_of_request(q, PAGE_SANDBOXES, query.ascending, &page))
        reply_page(q, &query, &page);
    json_decref(query.metadata);
}

/* Lists all running sandboxes in one answer. */
void sandboxes_list_v1(struct http_req *req)
{
    struct e2b_req *q = e2b_of(req);
    const char *metadata = http_query_get(req, "metadata");
    struct list_query query = {.tenant = q->tenant.id, .running = true, .after_us = INT64_MIN};
    struct found f = {.query = &query};

    if (metadata)
        fields_check(&q->in, filter_metadata(metadata, &query.metadata, &q->wrong));
    if (!e2b_read(q))
        return;
    find_sandboxes(q->front, &f);
    write_sandboxes(req, f.sandboxes, f.n);
    free(f.sandboxes);
    json_decref(query.metadata);
}
