
#include "guard/inspect_impl.h"

#define HEAD_OUT_MAX   (192u * 1024)       /* with everything that a rule can add */
#define DEFERRED_MAX   (1024u * 1024)      /* held of one request */
#define DEFERRED_TOTAL (32u * 1024 * 1024) /* held of all requests: further ones go out in chunks */
#define FRAMING_LINES  64

static size_t deferred_total;

/* ---- the head -------------------------------------------------------------------------------- */

/* Writes the head without framing and the empty line: these may only be known later. */
static int compose(struct inspect *i, const struct http_message *m, struct strbuf *out,
                   char why[RULES_WHY])
{
    bool path = m->target.len > 0 && (m->target.p[0] == '/' || m->target.p[0] == '*');
    int status;

    strbuf_add(out, m->method.p, m->method.len);
    strbuf_addstr(out, path ? " " : " /");
    strbuf_add(out, m->target.p, m->target.len);
    strbuf_addf(out, " HTTP/1.1\r\nHost: %s", i->name);
    if (m->host_port)
        strbuf_addf(out, ":%u", i->port);
    strbuf_addstr(out, "\r\n");
    status = rules_write(&i->rules, m, cleaner_changes(&i->up.cleaner), out, why);
    if (m->websocket)
        strbuf_addstr(out, "Connection: Upgrade\r\nUpgrade: websocket\r\n");
    else if (m->close)
        strbuf_addstr(out, "Connection: close\r\n");
    if (m->expect && !i->up.deferred)
        strbuf_addstr(out, "Expect: 100-continue\r\n");
    if (status == 0 && out->truncated) {
        snprintf(why, RULES_WHY, "the headers are too long");
        status = 431;
    }
    return status;
}

static void send_head(struct inspect *i, struct strbuf *head, enum http_framing framing,
                      uint64_t length)
{
    if (framing == FRAMING_LENGTH)
        strbuf_addf(head, "Content-Length: %llu\r\n", (unsigned long long)length);
    else if (framing == FRAMING_CHUNKED)
        strbuf_addstr(head, "Transfer-Encoding: chunked\r\n");
    strbuf_addstr(head, "\r\n");
    /* Reserves room for head and body, so that the head, which may hold secrets, is not moved. */
    side_reserve(&i->server, head->len + i->up.held.len + SIDE_HIGH + 2 * INSPECT_PIECE);
    i->server.wipe = i->rules.scrub;
    strbuf_add(&i->server.out, head->buf, head->len);
}

static void keep_head(struct inspect *i, const struct strbuf *head)
{
    size_t cap = head->len + FRAMING_LINES + 1;

    i->up.head = (struct strbuf){.buf = xcalloc(1, cap), .cap = cap, .max = cap - 1};
    strbuf_add(&i->up.head, head->buf, head->len);
    strbuf_init(&i->up.held, DEFERRED_MAX);
}

/* Decides how the body goes out, and sends the head if that is known already. */
static void start_body(struct inspect *i, const struct http_message *m, struct strbuf *head)
{
    struct inspect_upload *up = &i->up;

    body_reader_init(&up->body, m->framing, m->length);
    up->state = UPLOAD_BODY;
    i->down.state = DOWNLOAD_HEAD;
    if (up->deferred) {
        keep_head(i, head);
        if (m->expect)
            strbuf_addstr(&i->client.out, "HTTP/1.1 100 Continue\r\n\r\n");
        return;
    }
    up->chunked = m->framing == FRAMING_CHUNKED ||
                  (m->framing == FRAMING_LENGTH && cleaner_changes(&up->cleaner));
    send_head(i, head, up->chunked ? FRAMING_CHUNKED : m->framing, m->length);
}

static int judge(struct inspect *i, struct http_message *m, const char **why)
{
    int status = http_check_host(m, i->name, i->port, i->tls, why);

    return status ? status : cleaner_begin(&i->up.cleaner, i->guard, i->policy, m, why);
}

static void begin(struct inspect *i, const char *p, size_t len)
{
    static char memory[HEAD_OUT_MAX]; /* shared, for one thread; wiped, since it holds secrets */
    struct strbuf head = {
        .buf = memory, .cap = sizeof(memory), .max = sizeof(memory) - FRAMING_LINES};
    struct http_message m;
    const char *why;
    char text[INSPECT_WHY];
    int status = http_read_request(p, len, &m, &why);

    i->to_head = http_text_is(m.method, "HEAD");
    if (status == 0)
        status = judge(i, &m, &why);
    if (status) {
        inspect_refuse(i, status, why);
        return;
    }
    i->http10 = m.http10;
    i->close = m.close;
    i->upgrade = m.websocket;
    if (i->server.broken || i->server.eof) {
        snprintf(text, sizeof(text), "%s: %s", i->name,
                 i->server.why[0] ? i->server.why : "the server closed the connection");
        inspect_refuse(i, 502, text);
        return;
    }
    i->up.deferred = cleaner_changes(&i->up.cleaner) && m.framing == FRAMING_LENGTH &&
                     m.length <= DEFERRED_MAX && deferred_total < DEFERRED_TOTAL;
    memory[0] = '\0';
    status = compose(i, &m, &head, text);
    head.max = sizeof(memory) - 1;
    if (status)
        inspect_refuse(i, status, text);
    else
        start_body(i, &m, &head);
    explicit_bzero(memory, head.len);
}

/* ---- the body -------------------------------------------------------------------------------- */

static void stop_deferring(struct inspect *i, enum http_framing framing)
{
    struct inspect_upload *up = &i->up;

    send_head(i, &up->head, framing, up->held.len);
    up->chunked = framing == FRAMING_CHUNKED;
    if (up->chunked)
        body_write_chunk(&i->server.out, up->held.buf, up->held.len);
    else
        strbuf_add(&i->server.out, up->held.buf, up->held.len);
    inspect_upload_done(i);
}

static void emit(struct inspect *i, const char *p, size_t len)
{
    struct inspect_upload *up = &i->up;

    if (up->deferred && up->held.len + len <= DEFERRED_MAX &&
        deferred_total + len <= DEFERRED_TOTAL) {
        strbuf_add(&up->held, p, len);
        deferred_total += len;
        return;
    }
    if (up->deferred)
        stop_deferring(i, FRAMING_CHUNKED);
    if (up->chunked)
        body_write_chunk(&i->server.out, p, len);
    else
        strbuf_add(&i->server.out, p, len);
}

void inspect_upload_done(struct inspect *i)
{
    struct inspect_upload *up = &i->up;

    if (!up->deferred)
        return;
    deferred_total -= up->held.len;
    explicit_bzero(up->head.buf, up->head.cap);
    strbuf_done(&up->head);
    strbuf_done(&up->held);
    up->deferred = false;
}

static void refuse_body(struct inspect *i, int r)
{
    if (r == -EFBIG)
        inspect_refuse(i, 415, "the body is too large when unpacked");
    else
        inspect_refuse(i, 400, "the body is not what its Content-Encoding says");
}

static bool end_body(struct inspect *i)
{
    struct inspect_upload *up = &i->up;
    AUTO(strbuf_done) struct strbuf out = strbuf_upto(8 * INSPECT_PIECE);
    int r = 0;

    if (up->cleaner.stream)
        r = cleaner_end(&up->cleaner, &out);
    if (r < 0) {
        refuse_body(i, r);
        return true;
    }
    emit(i, out.buf, out.len);
    if (r > 0)
        return true;
    if (up->deferred)
        stop_deferring(i, FRAMING_LENGTH);
    else if (up->chunked)
        body_write_end(&i->server.out);
    up->state = UPLOAD_SENT;
    cleaner_record(&up->cleaner, i->sandbox, i->name, i->rules.label);
    cleaner_done(&up->cleaner);
    return true;
}

static void pass_piece(struct inspect *i, const char *p)
{
    struct inspect_upload *up = &i->up;
    AUTO(strbuf_done) struct strbuf out = strbuf_upto(8 * INSPECT_PIECE);
    size_t used = up->body.piece < INSPECT_PIECE ? up->body.piece : INSPECT_PIECE;
    int r = 0;

    if (up->cleaner.stream) {
        r = cleaner_feed(&up->cleaner, p, up->body.piece, &used, &out);
        emit(i, out.buf, out.len);
    } else {
        emit(i, p, used);
    }
    if (r < 0 || out.truncated) {
        refuse_body(i, r);
        return;
    }
    side_take(&i->client, used);
    body_reader_take(&up->body, used);
}

static bool pass_some(struct inspect *i)
{
    struct body_reader *body = &i->up.body;
    size_t len;
    const char *p = side_bytes(&i->client, &len);
    ssize_t n;

    if (body->piece > 0) {
        pass_piece(i, p);
        return true;
    }
    if (len == 0) {
        if (i->client.eof)
            inspect_abort(i, "the sandbox closed the connection in the middle of a request");
        return i->client.eof;
    }
    n = body_reader_next(body, p, len);
    if (n < 0)
        inspect_refuse(i, 400, "the body of the request is malformed");
    else
        side_take(&i->client, (size_t)n);
    return true;
}

/* Passes on some of the body. Notices its end at once, so that a response that is there already
 * counts as one to a whole request. */
static bool pass_body(struct inspect *i)
{
    struct body_reader *body = &i->up.body;
    bool moved = false;

    if (!side_has_room(&i->server))
        return false;
    if (!body_reader_done(body))
        moved = pass_some(i);
    if (i->state == INSPECT_OPEN && body_reader_done(body))
        moved = end_body(i);
    return moved;
}

/* ---- the steps of a request ------------------------------------------------------------------ */

static bool read_head(struct inspect *i)
{
    size_t len;
    const char *p = side_bytes(&i->client, &len);
    ssize_t n;

    if (i->server.fd >= 0 && !i->server.ready && !i->server.broken)
        return false; /* wait until it is clear whether the server can be reached */
    n = http_scan(&i->up.scan, p, len);
    if (n == 0 && !i->client.eof)
        return false;
    if (n == 0) {
        inspect_finish(i);
        return true;
    }
    i->requests++;
    i->request_ms = uv_now(i->guard->loop);
    if (n < 0) {
        inspect_refuse(i, n == -E2BIG ? 431 : 400,
                       n == -E2BIG ? "the head of the request is too long"
                                   : "the head of the request is malformed");
        return true;
    }
    begin(i, p, (size_t)n);
    if (i->state != INSPECT_OPEN)
        return true;
    side_take(&i->client, (size_t)n);
    if (body_reader_done(&i->up.body))
        end_body(i);
    return true;
}

bool inspect_request_step(struct inspect *i)
{
    switch (i->up.state) {
    case UPLOAD_NONE:
        return i->down.state == DOWNLOAD_NONE && read_head(i);
    case UPLOAD_BODY:
        return pass_body(i);
    case UPLOAD_SENT:
        return false;
    }
    return false;
}
