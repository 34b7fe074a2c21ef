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

static const char *const kinds[] = {"flow",     "dns",   "request", "policy", "secret", "token",
                                    "sanitise", "quota", "start",   "stop",   NULL};
static const char *const verdicts[] = {"allow", "deny", "report", NULL};

/* ---- the query ------------------------------------------------------------------------------- */

static void add_word(struct e2b_req *q, struct json *j, const char *field, const char *const *words)
{
    const char *value = check_query(q, field);

    while (value && *words && strcmp(*words, value) != 0)
        words++;
    if (value && !*words)
        fields_invalid(&q->in, "Invalid %s: docs/openapi.yaml lists the values", field);
    if (value)
        shape_text_key(j, field, value);
}

static void add_name(struct e2b_req *q, struct json *j)
{
    static const char letters[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_*";
    const char *name = check_query(q, "name");

    if (name && (!name[0] || strlen(name) > NAME_MAX_ || name[strspn(name, letters)]))
        fields_invalid(&q->in, "Invalid name: give a domain, or *.domain for those below it");
    if (name)
        shape_text_key(j, "name", name);
}

static void add_time(struct e2b_req *q, struct json *j, const char *field)
{
    const char *value = check_query(q, field);
    int64_t us = 0;

    if (!value)
        return;
    if (filter_time(value, &us, NULL) < 0 || us < 1000)
        fields_invalid(&q->in, "Invalid %s: not a time such as 2026-01-31T12:00:00Z", field);
    jw_i64(jw_key(j, field), us / 1000);
}

static void make_question(struct e2b_req *q, struct strbuf *out)
{
    const char *id = check_query_sandbox(q), *cursor = check_query(q, "cursor");
    uint64_t before = 0;
    struct json j = {.out = out};

    strbuf_init(out, ASK_MAX);
    jw_object_begin(&j);
    if (id)
        shape_text_key(&j, "sandbox", id);
    add_word(q, &j, "kind", kinds);
    add_word(q, &j, "verdict", verdicts);
    add_name(q, &j);
    add_time(q, &j, "from");
    add_time(q, &j, "to");
    jw_u64(jw_key(&j, "limit"), check_query_number(q, "limit", 1, LIMIT_MAX, LIMIT_DEFAULT));
    if (cursor && parse_u64("cursor", cursor, 1, INT64_MAX, &before, NULL) < 0)
        fields_invalid(&q->in, "Invalid cursor: give the nextCursor of the page before");
    if (cursor)
        jw_u64(jw_key(&j, "before"), before);
    jw_object_end(&j);
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

    make_question(q, &question);
    if (!e2b_read(q))
        return;
    e2b_wait(q);
    guard_ask(q->front, ASK_AUDIT, q->tenant.id, NULL, question.buf, question.len, on_answer, q);
}
