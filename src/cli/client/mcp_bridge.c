#include "cli/client/mcp_bridge.h"

#include <poll.h>
#include <signal.h>
#include <string.h>

#include "lib/base/clock.h"
#include "lib/text/json.h"
#include "lib/command/exit_status.h"
#include "lib/command/ui.h"
#include "cli/client/jr.h"
#include "cli/client/payload.h"
#include "cli/client/url.h"
#include "cli/client/web.h"

#define LINE_MAX_    (16u * 1024 * 1024)
#define POSTS_MAX    64 /* messages under way at once; then the next line waits */
#define TURN_MS      1000
#define FLUSH_MS     20
#define DRAIN_MS     630000 /* longer than any call may take */
#define GOODBYE_MS   1000
#define URL_MAX      (16u * 1024)
#define ERROR_MAX    4096
#define PIECE        (64u * 1024)
#define CODE_PARSE   (-32700)
#define CODE_REQUEST (-32600)
#define CODE_FAILED  (-32603)
/* Room for answers while the client reads nothing: one for each message under way. */
#define OUT_MAX ((size_t)POSTS_MAX * (MCP_EVENT_MAX + 1) + MCP_OUTPUT_HIGH)

/* ---- to the client --------------------------------------------------------------------------- */

/* A message is one line, so line feeds between the tokens of its JSON become blanks. */
void mcp_bridge_say(struct mcp_bridge *b, const char *message, size_t len)
{
    AUTO(strbuf_done) struct strbuf line = strbuf_upto(len + 1);

    strbuf_add(&line, message, len);
    for (char *p = line.buf; p < line.buf + line.len; p++)
        if (*p == '\n' || *p == '\r')
            *p = ' ';
    strbuf_addch(&line, '\n');
    spout_write(&b->out, line.buf, line.len);
}

static void say_error(struct mcp_bridge *b, const json_t *id, int code, const char *why)
{
    AUTO(strbuf_done) struct strbuf out = {0};
    AUTO(free_p) char *id_text = id ? json_dumps(id, JSON_COMPACT | JSON_ENCODE_ANY) : NULL;
    struct json j = {.out = &out};

    strbuf_init(&out, ERROR_MAX + (id_text ? strlen(id_text) : 0));
    jw_object_begin(&j);
    jw_string(jw_key(&j, "jsonrpc"), "2.0");
    if (id_text)
        jw_raw(jw_key(&j, "id"), id_text, strlen(id_text));
    jw_object_begin(jw_key(&j, "error"));
    jw_i64(jw_key(&j, "code"), code);
    jw_bytes(jw_key(&j, "message"), why, strnlen(why, ERROR_MAX / 8));
    jw_object_end(&j);
    jw_object_end(&j);
    mcp_bridge_say(b, out.buf, out.len);
}

void mcp_bridge_fail(struct mcp_bridge *b, const json_t *message, const char *why)
{
    size_t n = json_is_array(message) ? json_array_size(message) : 1;

    for (size_t i = 0; i < n; i++) {
        const json_t *one = json_is_array(message) ? json_array_get(message, i) : message,
                     *id = json_object_get(one, "id");

        if (id && json_object_get(one, "method"))
            say_error(b, id, CODE_FAILED, why);
    }
}

/* ---- from the client ------------------------------------------------------------------------- */

static void cancel(struct mcp_bridge *b, const json_t *id)
{
    LIST_EACH(struct mcp_post, p, &b->posts, link)
        if (id && mcp_post_is(p, id)) {
            mcp_post_drop(p);
            return;
        }
}

static void take_line(struct mcp_bridge *b, const char *line, size_t len)
{
    json_error_t e;
    json_t *message = json_loadb(line, len, 0, &e);

    if (!json_is_object(message) && !json_is_array(message)) {
        char why[256];
        snprintf(why, sizeof(why), "Parse error: %.160s", message ? "no object" : e.text);
        say_error(b, NULL, CODE_PARSE, why);
        json_decref(message);
    } else if (b->trouble) {
        mcp_bridge_fail(b, message, b->trouble);
        json_decref(message);
    } else if (strcmp(jr_text(message, "method"), "notifications/cancelled") == 0) {
        cancel(b, json_object_get(json_object_get(message, "params"), "requestId"));
        json_decref(message);
    } else {
        b->used = true;
        mcp_post_begin(b, message);
    }
}

static bool wants_lines(const struct mcp_bridge *b)
{
    return !b->initializing && b->n_posts < POSTS_MAX && spout_waiting(&b->out) <= MCP_OUTPUT_HIGH;
}

/* Takes the whole lines of the input, as long as the bridge can handle more. */
static void take_lines(struct mcp_bridge *b)
{
    size_t used = 0;
    char *end;

    while (wants_lines(b) && (end = memchr(b->in.buf + used, '\n', b->in.len - used))) {
        char *line = b->in.buf + used;
        size_t len = (size_t)(end - line);

        used += len + 1;
        if (len > 0 && line[len - 1] == '\r')
            len--;
        if (len > 0 && !b->skipping)
            take_line(b, line, len);
        b->skipping = false;
    }
    strbuf_consume(&b->in, used);
}

static void take_input(struct mcp_bridge *b)
{
    char piece[PIECE];
    ssize_t n = read(STDIN_FILENO, piece, sizeof(piece));

    if (n > 0)
        strbuf_add(&b->in, piece, (size_t)n);
    else if (n == 0 || (errno != EINTR && errno != EAGAIN))
        b->input_over = true;
    if (b->input_over && b->in.len > 0)
        strbuf_addch(&b->in, '\n'); /* the last line may have no line end */
    take_lines(b);
    if (!b->in.truncated && b->in.len < LINE_MAX_)
        return;
    if (!b->skipping)
        say_error(b, NULL, CODE_REQUEST, "The message is longer than 16 MiB");
    b->skipping = true;
    strbuf_reset(&b->in);
}

/* ---- the loop -------------------------------------------------------------------------------- */

static bool reader_has_gone(void)
{
    struct pollfd p = {.fd = STDOUT_FILENO, .events = 0};

    return poll(&p, 1, 0) > 0 && (p.revents & (POLLERR | POLLHUP));
}

static void turn(struct mcp_bridge *b)
{
    bool full = spout_waiting(&b->out) > 0;
    int fd = b->input_over || !wants_lines(b) ? -1 : STDIN_FILENO;
    struct repl_turn t = repl_watch_turn(&b->watch, fd, full ? FLUSH_MS : TURN_MS);

    if (t.interrupt)
        b->watch.ending = SIGINT;
    if (t.input)
        take_input(b);
    else
        take_lines(b);
    spout_pump(&b->out);
    if (spout_waiting(&b->out) <= MCP_OUTPUT_HIGH)
        LIST_EACH(struct mcp_post, p, &b->posts, link)
            mcp_post_go_on(p);
}

static void loop(struct mcp_bridge *b)
{
    uint64_t deadline_ns = 0;

    while (!b->watch.ending && !b->out.error) {
        if (b->input_over) {
            if (deadline_ns == 0)
                deadline_ns = clock_ns() + DRAIN_MS * 1000000ull;
            bool quiet = b->n_posts == 0 && b->in.len == 0 && spout_waiting(&b->out) == 0;
            if (quiet || clock_ns() > deadline_ns || reader_has_gone())
                return;
        }
        turn(b);
    }
}

/* ---- the end of the session ------------------------------------------------------------------ */

static size_t ignore(char *data UNUSED, size_t size, size_t n, void *arg UNUSED)
{
    return size * n;
}

/* Makes one last call to the server. Its outcome does not matter: the server ends sessions and
 * sandboxes by itself some time later. */
static void tell_server(struct mcp_bridge *b, const char *method, const char *path,
                        const char *header, const char *value, const struct strbuf *body)
{
    AUTO(web_headers_done) struct curl_slist *headers = NULL;
    AUTO(strbuf_done) struct strbuf url = strbuf_upto(URL_MAX);
    CURL *easy = b->client->easy;

    strbuf_addstr(&url, b->client->settings.api_url);
    strbuf_addstr(&url, path);
    web_add_header(&headers, header, value);
    if (b->client->settings.api_key)
        web_add_header(&headers, "X-API-Key", b->client->settings.api_key);
    struct web_request q = {.method = method, .url = url.buf, .headers = headers, .body = body};
    web_prepare(easy, &q);
    curl_easy_setopt(easy, CURLOPT_TIMEOUT_MS, (long)GOODBYE_MS);
    curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, ignore);
    curl_easy_perform(easy);
}

static void say_goodbye(struct mcp_bridge *b)
{
    AUTO(strbuf_done) struct strbuf body = {0};

    if (b->session[0])
        tell_server(b, "DELETE", "/mcp", "Mcp-Session-Id", b->session, NULL);
    if (!b->own_conversation)
        return;
    payload_texts(&body, "conversationId", b->conversation, NULL);
    tell_server(b, "POST", "/v1/contexts/cleanup", "Content-Type", "application/json", &body);
}

int mcp_bridge_run(struct mcp_bridge *b)
{
    struct sg_error e;

    if (repl_watch_open(&b->watch, &e) < 0) {
        ui_error("%s", e.message);
        return CLI_EXIT_SETUP;
    }
    strbuf_init(&b->in, LINE_MAX_ + PIECE);
    spout_init(&b->out, STDOUT_FILENO, OUT_MAX);
    strbuf_init(&b->url, URL_MAX);
    if (b->client) {
        strbuf_addstr(&b->url, b->client->settings.api_url);
        strbuf_addstr(&b->url, "/mcp");
        url_add_query(&b->url, "conversationId", b->conversation);
        url_add_query(&b->url, "pathId", b->path);
    }
    loop(b);
    LIST_EACH(struct mcp_post, p, &b->posts, link)
        mcp_post_drop(p);
    if (b->used)
        say_goodbye(b);
    repl_watch_close(&b->watch);
    spout_done(&b->out);
    strbuf_done(&b->in);
    strbuf_done(&b->url);
    return b->watch.ending ? CLI_EXIT_SIGNAL + b->watch.ending : 0;
}
