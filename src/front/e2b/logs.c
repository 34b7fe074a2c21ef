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

static bool parse_number(struct http_req *req, const char *name, uint64_t max, uint64_t *ret)
{
    const char *text = http_query_get(req, name);
    struct sg_error e;

    if (!text || parse_u64(name, text, 0, max, ret, &e) == 0)
        return true;
    reply_error(req, 400, "Invalid %s: it must be a number from 0 to %llu", name,
                (unsigned long long)max);
    return false;
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
    AUTO(strbuf_done) struct strbuf out = strbuf_upto(ANSWER_MAX);
    const struct sandbox_log *log = find_log(e2b_of(req));
    struct log_query q = {.to_ms = INT64_MAX, .limit = LINES_MAX};
    uint64_t start = 0;
    struct json j = {.out = &out};

    if (!log || !parse_number(req, "start", INT64_MAX, &start) ||
        !parse_number(req, "limit", INT32_MAX, &q.limit))
        return;
    q.from_ms = (int64_t)start;
    jw_object_begin(&j);
    write_array(&j, "logs", log, &q, write_line);
    write_array(&j, "logEntries", log, &q, write_entry);
    jw_object_end(&j);
    reply_json(req, 200, &out);
}

/* Reads direction, level and search. False: answered. */
static bool parse_choices(struct http_req *req, struct log_query *q)
{
    const char *direction = http_query_get(req, "direction");
    const char *level = http_query_get(req, "level");

    q->search = http_query_get(req, "search");
    q->backward = !direction || strcmp(direction, "backward") == 0;
    if (direction && !q->backward && strcmp(direction, "forward") != 0) {
        reply_error(req, 400, "Invalid direction: it must be forward or backward");
        return false;
    }
    q->level = level ? log_level_parse(level) : LOG_DEBUG;
    if (q->level == LOG_LEVEL_MAX_) {
        reply_error(req, 400, "Invalid level: it must be debug, info, warn or error");
        return false;
    }
    if (q->search && strlen(q->search) > SEARCH_MAX) {
        reply_error(req, 400, "Invalid search: it has more than %d bytes", SEARCH_MAX);
        return false;
    }
    return true;
}

/* Backward starts at the cursor or at the newest entry, forward at the cursor or at the oldest. */
void sandbox_logs_v2(struct http_req *req)
{
    AUTO(strbuf_done) struct strbuf out = strbuf_upto(ANSWER_MAX);
    const struct sandbox_log *log = find_log(e2b_of(req));
    struct log_query q = {.to_ms = INT64_MAX, .limit = LINES_MAX};
    uint64_t cursor = 0;
    struct json j = {.out = &out};

    if (!log || !parse_number(req, "cursor", INT64_MAX, &cursor) ||
        !parse_number(req, "limit", LINES_MAX, &q.limit) || !parse_choices(req, &q))
        return;
    if (http_query_get(req, "cursor"))
        *(q.backward ? &q.to_ms : &q.from_ms) = (int64_t)cursor;
    jw_object_begin(&j);
    write_array(&j, "logs", log, &q, write_entry);
    jw_object_end(&j);
    reply_json(req, 200, &out);
}
