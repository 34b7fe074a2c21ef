/* The log of a sandbox, forward or backward from a point in time. */
#include "lib/text/parse.h"
#include "front/e2b/sandbox.h"
#include "front/e2b/shape.h"
#include "front/core/ended_logs.h"

#define ANSWER_MAX     (16u * 1024 * 1024)     /* the log in two forms, one escaped twice */
#define LINE_MAX_BYTES (8u * SANDBOX_LOG_LINE) /* of one entry, escaped */
#define LINES_MAX      1000
#define SEARCH_MAX     256

struct log_query {
    int64_t from_ms, to_ms; /* inclusive */
    uint64_t limit;
    bool backward;
    enum log_level level;
    const char *search; /* NULL: all entries */
};

static bool wanted(const struct log_entry *l, const struct log_query *q)
{
    return l->ms >= q->from_ms && l->ms <= q->to_ms && l->level >= q->level &&
           (!q->search || memmem(l->text, l->len, q->search, strlen(q->search)));
}

/* E2B knows two sources: the programs in a sandbox, and the server that makes it. */
static bool is_inside(const struct log_entry *l)
{
    return l->fault == FAULT_CODE || l->fault == FAULT_AGENT;
}

static void write_entry(struct json *j, const struct log_entry *l)
{
    char pid[16];

    jw_object_begin(j);
    shape_time_key(j, "timestamp", l->ms);
    jw_string(jw_key(j, "level"), log_level_name(l->level));
    jw_bytes(jw_key(j, "message"), l->text, l->len);
    jw_object_begin(jw_key(j, "fields"));
    jw_string(jw_key(j, "source"), is_inside(l) ? "sandbox" : "server");
    jw_string(jw_key(j, "layer"), fault_name(l->fault));
    if (l->pid) {
        snprintf(pid, sizeof(pid), "%u", l->pid);
        jw_string(jw_key(j, "pid"), pid);
    }
    if (l->stream)
        jw_string(jw_key(j, "stream"), l->stream);
    jw_object_end(j);
    jw_object_end(j);
}

/* Writes a line as a text that is itself a JSON object: E2B's command line parses it, and needs a
 * level in it. */
static void write_line(struct json *j, const struct log_entry *l)
{
    AUTO(strbuf_done) struct strbuf text = strbuf_upto(LINE_MAX_BYTES);
    struct json line = {.out = &text};

    jw_object_begin(&line);
    jw_string(jw_key(&line, "level"), log_level_name(l->level));
    jw_string(jw_key(&line, "logger"), is_inside(l) ? "process" : "server");
    jw_string(jw_key(&line, "layer"), fault_name(l->fault));
    jw_bytes(jw_key(&line, "message"), l->text, l->len);
    if (l->pid)
        jw_u64(jw_key(&line, "pid"), l->pid);
    if (l->stream)
        jw_string(jw_key(&line, "stream"), l->stream);
    jw_object_end(&line);
    jw_object_begin(j);
    shape_time_key(j, "timestamp", l->ms);
    jw_bytes(jw_key(j, "line"), text.buf, text.len);
    jw_object_end(j);
}

static void write_array(struct json *j, const char *key, const struct sandbox_log *log,
                        const struct log_query *q,
                        void (*write)(struct json *j, const struct log_entry *l))
{
    size_t count = sandbox_log_count(log);
    uint64_t written = 0;

    jw_array_begin(jw_key(j, key));
    for (size_t i = 0; i < count && written < q->limit; i++) {
        const struct log_entry *l = sandbox_log_get(log, q->backward ? count - 1 - i : i);

        if (wanted(l, q)) {
            write(j, l);
            written++;
        }
    }
    jw_array_end(j);
}

static uint64_t parse_number(struct e2b_req *q, const char *name, uint64_t max, uint64_t fallback)
{
    const char *text = http_query_get(q->http, name);

    if (text && parse_u64(name, text, 0, max, &fallback, NULL) < 0)
        fields_invalid(&q->in, "Invalid %s: it must be a number from 0 to %llu", name,
                       (unsigned long long)max);
    return fallback;
}

/* The log of a sandbox that exists, or has ended not long ago. NULL: answered. */
static const struct sandbox_log *find_log(struct e2b_req *q)
{
    const struct sandbox_log *ended_logs = NULL;
    char id[ID_LEN + 1];
    struct sandbox *b;

    if (e2b_short_id(q->http->params[0], id) == 0)
        ended_logs = ended_logs_log(q->tenant.id, id);
    if (ended_logs)
        return ended_logs;
    b = e2b_sandbox(q);
    return b ? &b->log : NULL;
}

void sandbox_logs_v1(struct http_req *req)
{
    struct e2b_req *q = e2b_of(req);
    const struct sandbox_log *log = find_log(q);
    struct log_query query = {.to_ms = INT64_MAX};
    struct reply r;

    query.from_ms = (int64_t)parse_number(q, "start", INT64_MAX, 0);
    query.limit = parse_number(q, "limit", INT32_MAX, LINES_MAX);
    if (!log || !e2b_read(q))
        return;
    struct json *j = reply_begin(&r, ANSWER_MAX);
    write_array(j, "logs", log, &query, write_line);
    write_array(j, "logEntries", log, &query, write_entry);
    reply_send(q, 200, &r);
}

/* Reads direction, level and search. */
static void parse_choices(struct e2b_req *q, struct log_query *ret)
{
    const char *direction = http_query_get(q->http, "direction");
    const char *level = http_query_get(q->http, "level");

    ret->search = http_query_get(q->http, "search");
    ret->backward = !direction || strcmp(direction, "backward") == 0;
    ret->level = level ? log_level_parse(level) : LOG_DEBUG;
    if (direction && !ret->backward && strcmp(direction, "forward") != 0)
        fields_invalid(&q->in, "Invalid direction: it must be forward or backward");
    if (ret->level == LOG_LEVEL_MAX_)
        fields_invalid(&q->in, "Invalid level: it must be debug, info, warn or error");
    if (ret->search && strlen(ret->search) > SEARCH_MAX)
        fields_invalid(&q->in, "Invalid search: it has more than %d bytes", SEARCH_MAX);
}

/* Backward starts at the cursor or at the newest entry, forward at the cursor or at the oldest. */
void sandbox_logs_v2(struct http_req *req)
{
    struct e2b_req *q = e2b_of(req);
    const struct sandbox_log *log = find_log(q);
    struct log_query query = {.to_ms = INT64_MAX};
    uint64_t cursor = parse_number(q, "cursor", INT64_MAX, 0);
    struct reply r;

    query.limit = parse_number(q, "limit", LINES_MAX, LINES_MAX);
    parse_choices(q, &query);
    if (!log || !e2b_read(q))
        return;
    if (http_query_get(req, "cursor"))
        *(query.backward ? &query.to_ms : &query.from_ms) = (int64_t)cursor;
    write_array(reply_begin(&r, ANSWER_MAX), "logs", log, &query, write_entry);
    reply_send(q, 200, &r);
}
