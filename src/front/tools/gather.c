#include "front/tools/gather.h"

#include <string.h>

#include "lib/text/json.h"
#include "front/tools/budget.h"

/* Bytes of a line that is a result, with its type. Lines of output are far shorter. */
#define LINE_MAX_ (TOOL_RESULTS_MAX + 1024)
#define ERROR_MAX (8u * 1024 * 1024) /* three parts of 256 KiB, escaped */
#define NOTE_MAX  256
/* Why a result was left out. */
#define TOO_LARGE "it is larger than an answer may be"
#define NO_ROOM   "the server has no memory for it now"

void gather_init(struct gather *g)
{
    strbuf_init(&g->out, TOOL_OUTPUT_MAX);
    strbuf_init(&g->err, TOOL_OUTPUT_MAX);
    strbuf_init(&g->results, TOOL_RESULTS_MAX);
    strbuf_init(&g->line, LINE_MAX_);
}

void gather_done(struct gather *g)
{
    strbuf_done(&g->out);
    strbuf_done(&g->err);
    strbuf_done(&g->results);
    strbuf_done(&g->line);
    free(g->error);
    budget_hold(&g->taken, 0);
}

/* ---- reading a line -------------------------------------------------------------------------- */

static void add_text(struct strbuf *to, bool *cut, const char *text, size_t len)
{
    size_t n = text_cut(text, len, to->max - to->len);

    if (*cut)
        return;
    strbuf_add(to, text, n);
    *cut = n < len || to->truncated;
}

static void add_output(struct strbuf *to, bool *cut, const char *line, size_t len)
{
    if (*cut)
        return;
    json_t *v = json_loadb(line, len, JSON_ALLOW_NUL, NULL);
    const json_t *text = json_object_get(v, "text");
    if (json_is_string(text))
        add_text(to, cut, json_string_value(text), json_string_length(text));
    json_decref(v);
}

static bool tell(struct gather *g, const char *line, size_t len)
{
    return !g->on_line || g->on_line(g->owner, line, len);
}

/* Says on stderr, as if the cell had written it, that a result was left out. */
static bool left_out(struct gather *g, const char *why)
{
    AUTO(strbuf_done) struct strbuf line = strbuf_upto(2 * NOTE_MAX), text = strbuf_upto(NOTE_MAX);
    struct json j = {.out = &line};

    strbuf_addf(&text, "sandglass: a result was left out: %s\n", why);
    add_text(&g->err, &g->err_cut, text.buf, text.len);
    jw_object_begin(&j);
    jw_string(jw_key(&j, "type"), "stderr");
    jw_string(jw_key(&j, "text"), text.buf);
    jw_object_end(&j);
    return tell(g, line.buf, line.len);
}

/* `rest` is the object after its type: `"key":..., ...}`. */
static bool add_result(struct gather *g, const char *rest, size_t len)
{
    static const char main_result[] = "\"is_main_result\":true";
    struct strbuf *to = &g->results;
    bool first = to->len == 0;

    if (len + 2 > to->max - to->len)
        return left_out(g, "all results together are larger than an answer may be");
    if (!budget_hold(&g->taken, to->len + len))
        return left_out(g, NO_ROOM);
    if (!first)
        strbuf_addch(to, ',');
    size_t at = to->len;
    strbuf_addch(to, '{');
    strbuf_add(to, rest, len);
    if (len > sizeof(main_result) && memcmp(rest, main_result, sizeof(main_result) - 1) == 0) {
        g->main_at = at;
        g->main_len = to->len - at;
    }
    return true;
}

static char *copy_error(const char *rest, size_t len)
{
    struct strbuf s;

    strbuf_init(&s, ERROR_MAX);
    strbuf_addch(&s, '{');
    strbuf_add(&s, rest, len);
    return strbuf_detach(&s, NULL);
}

void gather_error(struct gather *g, const char *name, const char *value)
{
    struct strbuf s;
    struct json j = {.out = &s};

    free(g->error);
    strbuf_init(&s, ERROR_MAX);
    jw_object_begin(&j);
    jw_string(jw_key(&j, "name"), name);
    jw_string(jw_key(&j, "value"), value);
    jw_string(jw_key(&j, "traceback"), "");
    jw_object_end(&j);
    g->error = strbuf_detach(&s, NULL);
}

/* Whether the line begins with `head`; then *rest is the text after it. */
static bool is(const char *head, const char *line, size_t len, const char **rest)
{
    size_t n = strlen(head);

    *rest = line + n;
    return len > n && memcmp(line, head, n) == 0;
}

static bool on_whole(struct gather *g, const char *line, size_t len)
{
    const char *rest;
    bool more = true;

    if (is("{\"type\":\"keepalive\"", line, len, &rest))
        return true; /* a keepalive line: listeners send their own */
    if (is("{\"type\":\"stdout\",", line, len, &rest))
        add_output(&g->out, &g->out_cut, line, len);
    else if (is("{\"type\":\"stderr\",", line, len, &rest))
        add_output(&g->err, &g->err_cut, line, len);
    else if (is("{\"type\":\"result\",", line, len, &rest))
        more = add_result(g, rest, len - (size_t)(rest - line));
    else if (is("{\"type\":\"error\",", line, len, &rest) && !g->error)
        g->error = copy_error(rest, len - (size_t)(rest - line));
    return tell(g, line, len) && more;
}

/* ---- putting lines together ------------------------------------------------------------------ */

static bool end_of_line(struct gather *g, const char *p, size_t len)
{
    bool more;

    if (g->line.len == 0 && !g->skipping)
        return on_whole(g, p, len);
    strbuf_add(&g->line, p, len);
    if (g->line.truncated)
        g->skipping = TOO_LARGE;
    if (g->skipping)
        more = left_out(g, g->skipping);
    else
        more = on_whole(g, g->line.buf, g->line.len);
    strbuf_done(&g->line);
    g->skipping = NULL;
    return more;
}

bool gather_bytes(struct gather *g, const char *p, size_t len)
{
    bool more = true;
    const char *nl;

    while ((nl = memchr(p, '\n', len))) {
        size_t n = (size_t)(nl - p);

        more &= end_of_line(g, p, n);
        p += n + 1;
        len -= n + 1;
    }
    if (len == 0 || g->skipping)
        return more;
    strbuf_add(&g->line, p, len);
    if (g->line.truncated)
        g->skipping = TOO_LARGE;
    else if (!budget_hold(&g->taken, g->results.len + g->line.len))
        g->skipping = NO_ROOM;
    if (g->skipping)
        strbuf_done(&g->line);
    return more;
}
