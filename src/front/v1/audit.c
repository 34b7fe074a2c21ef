/* The tenant's part of the record: what left its sandboxes, and what was refused. The guard keeps
 * the record and reads it for us (front/core/guard.h); its answer is passed on as it is. */
#include <inttypes.h>
#include <string.h>

#include "lib/base/fd.h"
#include "lib/text/parse.h"
#include "front/e2b/filter.h"
#include "front/core/guard.h"
#include "front/v1/check.h"
#include "front/v1/handlers.h"
#include "front/v1/reply.h"
#include "front/v1/shape.h"

#define LIMIT_DEFAULT 100
#define LIMIT_MAX     1000
#define NAME_MAX_     255
#define ASK_MAX       4096
#define ANSWER_MAX    (4u * 1024 * 1024)

static const char *const kinds[] = {"flow",     "dns",   "request", "policy", "secret",
                                    "sanitise", "quota", "start",   "stop",   NULL};
static const char *const verdicts[] = {"allow", "deny", "report", NULL};

/* ---- the query ------------------------------------------------------------------------------- */

static int invalid(const char *field, const char *what, struct sg_error *e)
{
    return err_set(e, SG_ERR_INVALID, -EINVAL, "Invalid %s: %s", field, what);
}

static int add_word(struct e2b_req *q, struct json *j, const char *field, const char *const *words,
                    struct sg_error *e)
{
    const char *value = http_query_get(q->http, field);

    if (!http_query_has(q->http, field))
        return 0;
    while (value && *words && strcmp(*words, value) != 0)
        words++;
    if (!value || !*words)
        return invalid(field, "docs/openapi.yaml lists the values", e);
    shape_text_key(j, field, value);
    return 0;
}

static int add_sandbox(struct e2b_req *q, struct json *j, struct sg_error *e)
{
    const char *id = http_query_get(q->http, "sandboxId");

    if (!http_query_has(q->http, "sandboxId"))
        return 0;
    if (!id || !id_valid(id))
        return invalid("sandboxId", "it has 20 characters of a-z and 0-9", e);
    shape_text_key(j, "sandbox", id);
    return 0;
}

static int add_name(struct e2b_req *q, struct json *j, struct sg_error *e)
{
    static const char letters[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_*";
    const char *name = http_query_get(q->http, "name");

    if (!http_query_has(q->http, "name"))
        return 0;
    if (!name || !name[0] || strlen(name) > NAME_MAX_ || name[strspn(name, letters)])
        return invalid("name", "give a domain, or *.domain for those below it", e);
    shape_text_key(j, "name", name);
    return 0;
}

static int add_time(struct e2b_req *q, struct json *j, const char *field, struct sg_error *e)
{
    const char *value = http_query_get(q->http, field);
    int64_t us = 0;

    if (!http_query_has(q->http, field))
        return 0;
    if (!value || filter_time(value, &us, NULL) < 0 || us < 1000)
        return invalid(field, "not a time such as 2026-01-31T12:00:00Z", e);
    jw_i64(jw_key(j, field), us / 1000);
    return 0;
}

static int add_numbers(struct e2b_req *q, struct json *j, struct sg_error *e)
{
    const char *limit = http_query_get(q->http, "limit");
    const char *cursor = http_query_get(q->http, "cursor");
    uint64_t n = LIMIT_DEFAULT, before;
    int r = 0;

    if (http_query_has(q->http, "limit"))
        r = parse_u64("limit", limit ? limit : "", 1, LIMIT_MAX, &n, e);
    if (r < 0)
        return r;
    jw_u64(jw_key(j, "limit"), n);
    if (!http_query_has(q->http, "cursor"))
        return 0;
    if (!cursor || parse_u64("cursor", cursor, 1, INT64_MAX, &before, NULL) < 0)
        return invalid("cursor", "give the nextCursor of the page before", e);
    jw_u64(jw_key(j, "before"), before);
    return 0;
}

static int make_question(struct e2b_req *q, struct strbuf *out, struct sg_error *e)
{
    struct json j;
    int r;

    strbuf_init(out, ASK_MAX);
    jw_init(&j, out);
    jw_object_begin(&j);
    r = add_sandbox(q, &j, e);
    if (r == 0)
        r = add_word(q, &j, "kind", kinds, e);
    if (r == 0)
        r = add_word(q, &j, "verdict", verdicts, e);
    if (r == 0)
        r = add_name(q, &j, e);
    if (r == 0)
        r = add_time(q, &j, "from", e);
    if (r == 0)
        r = add_time(q, &j, "to", e);
    if (r == 0)
        r = add_numbers(q, &j, e);
    jw_object_end(&j);
    return r;
}

/* ---- the answer ------------------------------------------------------------------------------ */

/* Splits {"records":[...],"next":17} without looking into the records: the last comma is the one
 * before `next`. *ret_end: where the list ends; *ret_next: 0 if there is no further page. */
static int split_answer(const char *text, size_t len, const char **ret_end, uint64_t *ret_next)
{
    static const char start[] = "{\"records\":[", next[] = "],\"next\":";
    const char *comma = memrchr(text, ',', len);
    char number[24];
    size_t n;

    if (!comma || comma - text < (ptrdiff_t)strlen(start) ||
        strncmp(text, start, strlen(start)) != 0 || strncmp(comma - 1, next, strlen(next)) != 0)
        return -EBADMSG;
    *ret_end = comma;
    *ret_next = 0;
    comma += strlen(next) - 1;
    if (strcmp(comma, "null}") == 0)
        return 0;
    n = strcspn(comma, "}");
    if (n >= sizeof(number) || strcmp(comma + n, "}") != 0)
        return -EBADMSG;
    snprintf(number, sizeof(number), "%.*s", (int)n, comma);
    return parse_u64("next", number, 1, INT64_MAX, ret_next, NULL);
}

static void reply_records(struct e2b_req *q, int fd)
{
    AUTO(free_p) char *text = NULL;
    struct sg_error e = {0};
    const char *end = NULL, *start;
    char cursor[24] = "";
    uint64_t next = 0;
    struct reply r;
    size_t len;

    if (fd < 0 || lseek(fd, 0, SEEK_SET) < 0 || fd_read_all(fd, ANSWER_MAX, &text, &len) < 0 ||
        split_answer(text, len, &end, &next) < 0) {
        err_set(&e, SG_ERR_INTERNAL, -EBADMSG, "the guard's answer about the record is malformed");
        reply_sg_error(q->http, &e);
        return;
    }
    start = strchr(text, '[');
    struct json *j = reply_begin(&r, ANSWER_MAX + ASK_MAX);
    jw_raw(jw_key(j, "records"), start, (size_t)(end - start));
    if (next > 0)
        snprintf(cursor, sizeof(cursor), "%" PRIu64, next);
    shape_nullable_key(j, "nextCursor", cursor);
    reply_send(q, 200, &r);
}

static void on_answer(void *arg, int r, const void *payload, size_t len, int fd_)
{
    AUTO(close_p) int fd = fd_;
    struct e2b_req *q = arg;
    struct sg_error e = {0};

    if (!e2b_back(q))
        return;
    if (r == 0) {
        reply_records(q, fd);
        return;
    }
    if (r == -EAGAIN || r == -ETIMEDOUT)
        err_set(&e, SG_ERR_LIMIT, -EAGAIN, "The record cannot be read now: try again in a second");
    else
        err_set(&e, SG_ERR_INTERNAL, r, "the guard cannot read the record: %.*s", (int)len,
                (const char *)payload);
    reply_sg_error(q->http, &e);
}

void v1_audit(struct http_req *req)
{
    AUTO(strbuf_done) struct strbuf question = {0};
    struct e2b_req *q = e2b_of(req);
    struct sg_error e;

    if (make_question(q, &question, &e) < 0) {
        reply_sg_error(req, &e);
        return;
    }
    e2b_wait(q);
    guard_ask(q->front, ASK_AUDIT, q->tenant.id, NULL, question.buf, question.len, on_answer, q);
}
