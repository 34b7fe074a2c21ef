/* Takes requests from their heads to their handlers. */
#include "lib/rpc/rpc.h"

#include <strings.h>

#include "lib/rpc/impl.h"

#define PIECE_MAX           (256u * 1024) /* of a body, as http.h delivers them */
#define KEEPALIVE_DEFAULT_S 90
#define KEEPALIVE_MAX_S     3600
#define TIMEOUT_DIGITS      10

/* ---- end of a call --------------------------------------------------------------------------- */

static void call_free(struct rpc_call *c)
{
    json_decref(c->first);
    json_decref(c->keepalive);
    rpc_envelopes_done(&c->input);
    strbuf_done(&c->rest);
    rpc_budget_release(c);
    free(c);
}

static void on_timer_closed(uv_handle_t *h)
{
    call_free(h->data);
}

void rpc_abandon(struct rpc_call *c)
{
    if (c->over)
        return;
    c->over = true;
    if (c->timer_used)
        uv_timer_stop(&c->timer);
    if (c->on_close)
        c->on_close(c);
}

static void on_close(struct http_req *req)
{
    struct rpc_call *c = req->owner;

    rpc_abandon(c);
    work_drop(&c->work);
    if (c->service->release)
        c->service->release(c->context);
    if (c->timer_used)
        uv_close((uv_handle_t *)&c->timer, on_timer_closed);
    else
        call_free(c);
}

static void on_writable(struct http_req *req)
{
    struct rpc_call *c = req->owner;

    if (c->rest.len > 0) {
        rpc_answer_pump(c);
        return;
    }
    c->blocked = false;
    if (!c->over && c->on_writable)
        c->on_writable(c);
}

/* ---- time ------------------------------------------------------------------------------------ */

static void on_timer(uv_timer_t *timer);

static void timer_arm(struct rpc_call *c)
{
    uint64_t now = uv_now(c->loop), at = c->deadline_at;

    if (c->over)
        return;
    if (c->keepalive_at && (!at || c->keepalive_at < at))
        at = c->keepalive_at;
    if (!at)
        return;
    if (!c->timer_used) {
        uv_timer_init(c->loop, &c->timer);
        c->timer.data = c;
        c->timer_used = true;
    }
    uv_timer_start(&c->timer, on_timer, at > now ? at - now : 0, 0);
}

/* Sending only moves keepalive_at and leaves the timer alone; this function looks at keepalive_at
 * when the timer fires. */
static void on_timer(uv_timer_t *timer)
{
    struct rpc_call *c = timer->data;
    uint64_t now = uv_now(c->loop);

    if (c->deadline_at && now >= c->deadline_at) {
        rpc_fail(c, RPC_DEADLINE_EXCEEDED, "the call's time of %llu ms is over",
                 (unsigned long long)c->timeout_ms);
        return;
    }
    if (c->keepalive_at && now >= c->keepalive_at) {
        /* bytes that wait for the client are a sign of life, too */
        if (c->blocked)
            c->keepalive_at = now + c->keepalive_ms;
        else
            rpc_send(c, json_incref(c->keepalive));
    }
    timer_arm(c);
}

void rpc_set_keepalive(struct rpc_call *c, json_t *message)
{
    json_decref(c->keepalive);
    c->keepalive = message;
    c->keepalive_at = uv_now(c->loop) + c->keepalive_ms;
    timer_arm(c);
}

void rpc_extend_deadline(struct rpc_call *c, uint64_t ms)
{
    if (!c->deadline_at)
        return;
    c->deadline_at += ms;
    timer_arm(c);
}

/* Digits only; false if it is something else. */
static bool read_number(const char *text, uint64_t *ret)
{
    uint64_t v = 0;
    size_t n = strspn(text, "0123456789");

    if (n == 0 || n > TIMEOUT_DIGITS || text[n] != '\0')
        return false;
    for (; *text; text++)
        v = v * 10 + (uint64_t)(*text - '0');
    *ret = v;
    return true;
}

static bool read_times(struct rpc_call *c)
{
    const char *timeout = http_header_get(c->req, "connect-timeout-ms");
    const char *interval = http_header_get(c->req, "keepalive-ping-interval");
    uint64_t seconds = KEEPALIVE_DEFAULT_S;

    if (timeout && *timeout && !read_number(timeout, &c->timeout_ms)) {
        rpc_fail(c, RPC_INVALID_ARGUMENT,
                 "Connect-Timeout-Ms '%.40s' is not a number of milliseconds of at most %d digits",
                 timeout, TIMEOUT_DIGITS);
        return false;
    }
    if (interval && (!read_number(interval, &seconds) || seconds == 0))
        seconds = KEEPALIVE_DEFAULT_S;
    c->keepalive_ms = (seconds < KEEPALIVE_MAX_S ? seconds : KEEPALIVE_MAX_S) * 1000;
    if (c->timeout_ms)
        c->deadline_at = uv_now(c->loop) + c->timeout_ms;
    timer_arm(c);
    return true;
}

/* ---- messages -------------------------------------------------------------------------------- */

/* The code that goes with an error of the decoder or of the framing. */
static enum rpc_code code_of(const struct sg_error *e)
{
    return e->code == -ENOTSUP                          ? RPC_UNIMPLEMENTED
           : e->code == -EMSGSIZE || e->code == -ENOMEM ? RPC_RESOURCE_EXHAUSTED
                                                        : RPC_INVALID_ARGUMENT;
}

struct decoded {
    json_t *message; /* NULL: e says why */
    struct sg_error e;
};

/* Runs on a thread if the message is long: a few MiB of JSON take a tenth of a second. */
static struct decoded *decode_new(const struct rpc_message *m, enum rpc_codec codec, const char *p,
                                  size_t len)
{
    struct decoded *d = xcalloc(1, sizeof(*d));

    if (rpc_decode(m, codec, p, len, &d->message, &d->e) < 0)
        d->message = NULL;
    return d;
}

static void *make_json(const void *message, const char *p, size_t len)
{
    return decode_new(message, RPC_JSON, p, len);
}

static void *make_proto(const void *message, const char *p, size_t len)
{
    return decode_new(message, RPC_PROTO, p, len);
}

static void decoded_drop(void *made)
{
    json_decref(((struct decoded *)made)->message);
    free(made);
}

static const struct http_make makes[] = {
    [RPC_JSON] = {make_json, decoded_drop},
    [RPC_PROTO] = {make_proto, decoded_drop},
};

/* Returns the message, or NULL: the call has failed, or the client is gone. */
static json_t *decoded_take(struct rpc_call *c, struct decoded *d)
{
    json_t *message = c->over ? NULL : steal_ptr(&d->message);

    if (!c->over && !message)
        rpc_fail(c, code_of(&d->e), "%s", d->e.message);
    decoded_drop(d);
    return message;
}

static void handle(struct rpc_call *c, json_t *message)
{
    c->method->handle(c, message);
    json_decref(message);
}

static void on_unary_made(struct http_req *req, void *made)
{
    struct rpc_call *c = req->owner;
    json_t *message = decoded_take(c, made);

    if (message)
        handle(c, message);
}

/* A server stream's request must be exactly one message. */
static void take_first(struct rpc_call *c, json_t *message)
{
    if (!c->first) {
        c->first = message;
        return;
    }
    json_decref(message);
    rpc_fail(c, RPC_INVALID_ARGUMENT, "the request has more than one message");
}

/* Every whole message of the request was taken, and no more will come. */
static void input_ended(struct rpc_call *c)
{
    c->input_told = true;
    if (rpc_envelopes_partial(&c->input))
        rpc_fail(c, RPC_INVALID_ARGUMENT, "the request ends inside a message");
    else if (c->method->kind == RPC_CLIENT_STREAM)
        c->method->handle(c, NULL);
    else if (!c->first)
        rpc_fail(c, RPC_INVALID_ARGUMENT, "the request has no message");
    else
        handle(c, steal_ptr(&c->first));
}

/* Gives a message of a stream to the handler. */
static void take_message(struct rpc_call *c, struct decoded *d)
{
    json_t *message = decoded_take(c, d);

    if (message && c->method->kind == RPC_SERVER_STREAM)
        take_first(c, message);
    else if (message)
        handle(c, message);
}

static void drain_input(struct rpc_call *c);

static void go_on(struct rpc_call *c)
{
    c->resting = false;
    if (!c->held)
        http_body_resume(c->req);
    drain_input(c);
}

static void next_slice(struct work *w)
{
    go_on(CONTAINER_OF(w, struct rpc_call, work));
}

static void on_message_made(struct http_req *req, void *made)
{
    struct rpc_call *c = req->owner;

    take_message(c, made);
    go_on(c);
}

/* Ends this slice of work: the remaining messages wait for the next. */
static void rest(struct rpc_call *c)
{
    c->resting = true;
    c->work.run = next_slice;
    http_body_pause(c->req);
    work_post(http_server_works(c->req->server), &c->work, c->req->party);
}

/* Decodes a message on a thread, because it is too long for the loop; the messages after it
 * wait. */
static void decode_elsewhere(struct rpc_call *c, const char *p, size_t len)
{
    struct strbuf copy;

    strbuf_init(&copy, len);
    strbuf_add(&copy, p, len);
    c->resting = true;
    http_body_pause(c->req);
    http_part_make(c->req, &copy, &makes[c->codec], c->method->in, on_message_made);
}

/* Gives every whole message to the handler. If the handler holds and resumes inside its call, this
 * loop goes on: it does not recurse. */
static void drain_input(struct rpc_call *c)
{
    struct sg_error e = {0};
    size_t len, bytes = 0;
    unsigned n = 0;
    const char *p;
    int r = 0;

    if (c->draining || c->resting)
        return;
    c->draining = true;
    while (!c->over && !c->held && (r = rpc_envelopes_next(&c->input, &p, &len, &e)) > 0) {
        if (len > WORK_PIECE) {
            decode_elsewhere(c, p, len);
            break;
        }
        bytes += len;
        take_message(c, decode_new(c->method->in, c->codec, p, len));
        if (++n == WORK_MESSAGES || bytes >= WORK_PIECE) {
            rest(c);
            break;
        }
    }
    c->draining = false;
    if (c->over || c->held || c->resting)
        return;
    if (r < 0)
        rpc_fail(c, code_of(&e), "%s", e.message);
    else if (c->input_over && !c->input_told)
        input_ended(c);
}

static void on_body(struct http_req *req, const char *data, size_t len)
{
    struct rpc_call *c = req->owner;
    struct sg_error e = {0};

    if (c->over)
        return;
    if (rpc_envelopes_feed(&c->input, data, len, &e) < 0)
        rpc_fail(c, code_of(&e), "%s", e.message);
    else
        drain_input(c);
}

static void on_body_end(struct http_req *req)
{
    struct rpc_call *c = req->owner;

    c->input_over = true;
    drain_input(c);
}

void rpc_hold(struct rpc_call *c)
{
    c->held = true;
    http_body_pause(c->req);
}

void rpc_resume(struct rpc_call *c)
{
    if (!c->held || c->over)
        return;
    c->held = false;
    if (!c->resting)
        http_body_resume(c->req);
    drain_input(c);
}

/* ---- head ------------------------------------------------------------------------------------ */

/* Compares the type without its parameters. */
static bool is_type(const char *header, const char *type)
{
    size_t n = strlen(type);

    return strncasecmp(header, type, n) == 0 && strchr(" ;", header[n]);
}

static bool read_content_type(struct rpc_call *c)
{
    static const struct {
        const char *type;
        bool streaming;
        enum rpc_codec codec;
    } types[] = {
        {"application/json", false, RPC_JSON},
        {"application/proto", false, RPC_PROTO},
        {"application/connect+json", true, RPC_JSON},
        {"application/connect+proto", true, RPC_PROTO},
    };
    const char *header = http_header_get(c->req, "content-type");

    for (size_t i = 0; header && i < ARRAY_SIZE(types); i++)
        if (is_type(header, types[i].type) &&
            types[i].streaming == (c->method->kind != RPC_UNARY)) {
            c->codec = types[i].codec;
            c->streaming = types[i].streaming;
            return true;
        }
    return false;
}

static const char *accepted(const struct rpc_method *m)
{
    return m->kind == RPC_UNARY ? "application/json, application/proto"
                                : "application/connect+json, application/connect+proto";
}

/* Checks the headers that unary calls and streams share. False: the request was answered. */
static bool check_headers(struct rpc_call *c)
{
    const char *version = http_header_get(c->req, "connect-protocol-version");
    const char *encoding =
        http_header_get(c->req, c->streaming ? "connect-content-encoding" : "content-encoding");

    if (version && strcmp(version, "1") != 0) {
        rpc_fail(c, RPC_INVALID_ARGUMENT, "Connect-Protocol-Version must be 1, not '%.40s'",
                 version);
        return false;
    }
    if (encoding && *encoding && strcasecmp(encoding, "identity") != 0) {
        rpc_fail(c, RPC_UNIMPLEMENTED, "the encoding '%.40s' is not supported: use identity",
                 encoding);
        return false;
    }
    return read_times(c);
}

static const struct rpc_method *find_method(const struct rpc_service *s, const char *path)
{
    size_t n = strlen(s->prefix);

    for (size_t i = 0; strncmp(path, s->prefix, n) == 0 && i < s->n; i++)
        if (strcmp(s->methods[i].name, path + n) == 0)
            return &s->methods[i];
    return NULL;
}

void rpc_serve(const struct rpc_service *s, uv_loop_t *loop, struct http_req *req, void *context)
{
    struct rpc_call *c =
        NEW(struct rpc_call, .req = req, .service = s, .loop = loop, .context = context);

    c->method = find_method(s, req->path);
    req->owner = c;
    req->on_close = on_close;
    req->on_writable = on_writable;
    req->on_body = on_body;
    req->on_body_end = on_body_end;
    if (!c->method) {
        rpc_answer_error(req, 404, RPC_UNIMPLEMENTED, "there is no such method");
    } else if (req->method != HTTP_M_POST) {
        http_add_header(req, "Allow", "POST");
        rpc_answer_error(req, 405, RPC_UNIMPLEMENTED, "a method is called with POST");
    } else if (!read_content_type(c)) {
        http_add_header(req, "Accept-Post", accepted(c->method));
        rpc_answer_error(req, 415, RPC_UNIMPLEMENTED,
                         "the content type is not one that this method takes: see Accept-Post");
    } else if (check_headers(c)) {
        if (!c->streaming) {
            http_body_make(req, RPC_REQUEST_MAX, &makes[c->codec], c->method->in, on_unary_made);
            return;
        }
        rpc_envelopes_init(&c->input, RPC_REQUEST_MAX, PIECE_MAX);
        req->body_may_rest = c->method->kind == RPC_CLIENT_STREAM;
        http_body_stream(req);
    }
}
