/* The events of sandboxes (front/core/e2b_event.h), the newest first unless `orderAsc` says otherwise:
 * as many as are kept of each tenant (event_keep). */
#include "front/e2b/events.h"

#include <stdio.h>
#include <string.h>

#include "front/core/e2b_event.h"
#include "front/e2b/request.h"
#include "front/e2b/shape.h"
#include "front/store/events.h"
#include "lib/text/parse.h"

#define LIMIT_DEFAULT 10
#define LIMIT_MAX     100
#define ANSWER_MAX    (2u * 1024 * 1024) /* a page of the largest */
#define KINDS_MAX     512

static uint32_t parse_number(struct e2b_req *q, const char *name, uint64_t min, uint64_t max,
                             uint64_t fallback)
{
    const char *text = http_query_get(q->http, name);

    if (text && parse_u64(name, text, min, max, &fallback, NULL) < 0)
        fields_invalid(&q->in, "Invalid %s: it must be a number from %llu to %llu", name,
                       (unsigned long long)min, (unsigned long long)max);
    return (uint32_t)fallback;
}

static bool parse_flag(struct e2b_req *q, const char *name)
{
    const char *text = http_query_get(q->http, name);
    bool yes = text && strcmp(text, "true") == 0;

    if (text && !yes && strcmp(text, "false") != 0)
        fields_invalid(&q->in, "Invalid %s: it must be true or false", name);
    return yes;
}

/* Reads `types`, which may come several times, or with commas, as the kinds in the store. */
static const char *parse_types(struct e2b_req *q)
{
    struct strbuf kinds = strbuf_upto(KINDS_MAX);
    uint32_t seen = 0;
    const char *text;

    for (size_t i = 0; (text = http_query_nth(q->http, "types", i)); i++)
        for (size_t len; (len = strcspn(text, ",")) > 0; text += len + (text[len] == ',')) {
            enum event_kind kind;

            if (!e2b_event_kind(text, len, &kind)) {
                fields_invalid(&q->in,
                               "Invalid types: there is no '%.*s'; write names such as "
                               "sandbox.lifecycle.created",
                               (int)(len < 64 ? len : 64), text);
                break;
            }
            if (!(seen & (1u << kind)))
                strbuf_addf(&kinds, "%s%s ", seen ? "" : " ", event_kind_text(kind));
            seen |= 1u << kind;
        }
    char *copy = seen ? http_req_alloc(q->http, kinds.len + 1) : NULL;
    if (copy)
        memcpy(copy, kinds.buf, kinds.len + 1);
    strbuf_done(&kinds);
    return copy;
}

static void write_event(const char *e2b, void *arg)
{
    json_t *event = e2b_event_read(e2b);
    struct json *j = arg;

    if (!event)
        return;
    jw_object_begin(j);
    for (const struct e2b_event_field *f = e2b_event_fields; f->api; f++) {
        const json_t *v = json_object_get(event, f->webhook);

        jw_key(j, f->api);
        if (v)
            shape_value(j, v);
        else
            jw_null(j);
    }
    jw_object_end(j);
    json_decref(event);
}

static void reply_events(struct e2b_req *q, const char *sandbox)
{
    AUTO(strbuf_done) struct strbuf out = strbuf_upto(ANSWER_MAX);
    struct store_e2b_query query = {.tenant = q->tenant.id, .sandbox = sandbox};
    struct json j = {.out = &out};
    struct sg_error e;

    query.offset = parse_number(q, "offset", 0, INT32_MAX, 0);
    query.limit = parse_number(q, "limit", 1, LIMIT_MAX, LIMIT_DEFAULT);
    query.oldest_first = parse_flag(q, "orderAsc");
    query.kinds = parse_types(q);
    if (!e2b_read(q))
        return;
    events_write_now(q->front);
    jw_array_begin(&j);
    int r = store_events_e2b(q->front->store, &query, write_event, &j, &e);
    jw_array_end(&j);
    if (r < 0)
        reply_sg_error(q->http, &e);
    else
        reply_json(q->http, 200, &out);
}

void e2b_events(struct http_req *req)
{
    reply_events(e2b_of(req), NULL);
}

/* Of a sandbox that is not there, or is another tenant's, there are none. */
void e2b_sandbox_events(struct http_req *req)
{
    struct e2b_req *q = e2b_of(req);

    if (e2b_short_id(req->params[0], q->id) < 0)
        fields_invalid(&q->in, "Invalid sandbox ID");
    reply_events(q, q->id);
}
