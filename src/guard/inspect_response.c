#include <strings.h>

#include "guard/inspect_impl.h"

/* ---- the head -------------------------------------------------------------------------------- */

static void write_text(struct inspect *i, struct http_text t)
{
    if (i->rules.scrub)
        scrub_text(i->rules.scrub, t.p, t.len, &i->client.out);
    else
        strbuf_add(&i->client.out, t.p, t.len);
}

static void write_status(struct inspect *i, const struct http_message *m)
{
    strbuf_addf(&i->client.out, "HTTP/1.1 %u ", m->status);
    write_text(i, m->reason);
    strbuf_addstr(&i->client.out, "\r\n");
}

/* plain_body: the body was unpacked, so its Content-Encoding is left out. */
static void write_fields(struct inspect *i, const struct http_message *m, bool plain_body)
{
    struct strbuf *out = &i->client.out;

    for (size_t k = 0; k < m->n_fields; k++) {
        const struct http_field *f = &m->fields[k];

        if (!http_passes(m, f) || (plain_body && http_text_is(f->name, "content-encoding")) ||
            (i->rules.scrub && http_text_is(f->name, "accept-ranges")))
            continue;
        write_text(i, f->name);
        strbuf_addstr(out, ": ");
        write_text(i, f->value);
        strbuf_addstr(out, "\r\n");
    }
}

/* How the body is written to the sandbox. It ends with the connection if the server's did, or for a
 * client that knows no chunks. */
static enum http_framing choose_framing(const struct inspect *i, const struct http_message *m)
{
    if (m->framing == FRAMING_NONE || (m->framing == FRAMING_LENGTH && !i->down.inflater))
        return m->framing;
    if (i->http10 || (m->framing == FRAMING_CLOSE && !i->down.inflater))
        return FRAMING_CLOSE;
    return FRAMING_CHUNKED;
}

static void write_framing(struct inspect *i, const struct http_message *m)
{
    struct strbuf *out = &i->client.out;
    bool told = m->framing == FRAMING_NONE && (i->to_head || m->status == 304) &&
                http_find(m, "content-length");

    if (i->down.written == FRAMING_LENGTH || told)
        strbuf_addf(out, "Content-Length: %llu\r\n", (unsigned long long)m->length);
    if (i->down.written == FRAMING_CHUNKED)
        strbuf_addstr(out, "Transfer-Encoding: chunked\r\n");
    if (i->close)
        strbuf_addstr(out, "Connection: close\r\n");
    strbuf_addstr(out, "\r\n");
}

/* Whether a response is only a part of something, which may begin or end in the middle of a secret.
 * The guard has not asked for a part. */
static bool is_part(const struct http_message *m)
{
    static const char several[] = "multipart/byteranges";
    const struct http_field *type = http_find(m, "content-type");

    return m->status == 206 || http_find(m, "content-range") ||
           (type && type->value.len >= strlen(several) &&
            strncasecmp(type->value.p, several, strlen(several)) == 0);
}

static void begin(struct inspect *i, const struct http_message *m)
{
    struct inspect_download *down = &i->down;
    bool scrubbed = i->rules.scrub && m->framing != FRAMING_NONE;
    enum body_coding coding = body_coding(m);

    if (i->rules.scrub && is_part(m)) {
        inspect_refuse(i, 502,
                       "the server's answer is partial content, in which secrets cannot be found");
        return;
    }
    if (scrubbed && coding == CODING_UNKNOWN) {
        inspect_refuse(i, 502,
                       "the server's answer has an encoding in which secrets cannot be found");
        return;
    }
    if (scrubbed && coding == CODING_INFLATE)
        down->inflater = inflater_new();
    down->scrubbed = scrubbed;
    if (scrubbed)
        scrub_stream_init(&down->scrub, i->rules.scrub);
    body_reader_init(&down->body, m->framing, m->length);
    down->written = choose_framing(i, m);
    down->state = DOWNLOAD_BODY;
    down->begun = true;
    /* A server that answers before it has the whole request will not read the rest. */
    i->close = i->close || m->close || i->up.state != UPLOAD_SENT || i->client.eof;
    write_status(i, m);
    write_fields(i, m, down->inflater);
    write_framing(i, m);
}

static void start_tunnel(struct inspect *i, const struct http_message *m)
{
    if (!i->upgrade || !m->websocket || i->up.state != UPLOAD_SENT) {
        inspect_refuse(i, 502, "the server switched to a protocol that was not asked for");
        return;
    }
    write_status(i, m);
    write_fields(i, m, false);
    strbuf_addstr(&i->client.out, "Connection: Upgrade\r\nUpgrade: websocket\r\n\r\n");
    i->down.begun = true;
    i->down.scrubbed = i->rules.scrub;
    if (i->down.scrubbed)
        scrub_stream_init(&i->down.scrub, i->rules.scrub);
    i->state = INSPECT_TUNNEL;
    inspect_record(i, true, i->rules.label, "websocket");
}

static void pass_interim(struct inspect *i, const struct http_message *m)
{
    if (++i->down.interim > INSPECT_INTERIM_MAX) {
        inspect_refuse(i, 502, "the server sent too many interim answers");
        return;
    }
    if (i->http10) /* HTTP/1.0 knows no interim responses */
        return;
    write_status(i, m);
    write_fields(i, m, false);
    strbuf_addstr(&i->client.out, "\r\n");
}

static void no_answer(struct inspect *i)
{
    char text[INSPECT_WHY];

    snprintf(text, sizeof(text), "%s: %s", i->name,
             i->server.why[0] ? i->server.why
                              : "the server closed the connection without an answer");
    inspect_refuse(i, 502, text);
}

static bool read_head(struct inspect *i)
{
    struct http_message m;
    const char *why = "not HTTP/1.1, or too long";
    size_t len;
    const char *p = side_bytes(&i->server, &len);
    char text[INSPECT_WHY];
    ssize_t n;

    if (!side_has_room(&i->client))
        return false;
    n = http_scan(&i->down.scan, p, len);
    if (n == 0 && !i->server.eof)
        return false;
    if (n == 0) {
        no_answer(i);
        return true;
    }
    if (n < 0 || http_read_response(p, (size_t)n, i->to_head, &m, &why) < 0) {
        snprintf(text, sizeof(text), "the answer of %s is malformed: %s", i->name, why);
        inspect_refuse(i, 502, text);
        return true;
    }
    if (m.status == 101)
        start_tunnel(i, &m);
    else if (m.status < 200)
        pass_interim(i, &m);
    else
        begin(i, &m);
    if (i->state != INSPECT_LINGER)
        side_take(&i->server, (size_t)n);
    i->down.scan = (struct http_scan){0};
    return true;
}

/* ---- the body -------------------------------------------------------------------------------- */

static void emit(struct inspect *i, const char *p, size_t len)
{
    if (i->state == INSPECT_OPEN && i->down.written == FRAMING_CHUNKED)
        body_write_chunk(&i->client.out, p, len);
    else
        strbuf_add(&i->client.out, p, len);
}

static void scrub_and_emit(struct inspect *i, const char *p, size_t len, bool last)
{
    AUTO(strbuf_done) struct strbuf out = strbuf_upto(INSPECT_PIECE + SCRUB_HELD_MAX);

    if (!i->down.scrubbed) {
        emit(i, p, len);
        return;
    }
    scrub_feed(&i->down.scrub, p, len, last, &out);
    emit(i, out.buf, out.len);
}

void inspect_download_flush(struct inspect *i)
{
    AUTO(strbuf_done) struct strbuf out = strbuf_upto(SCRUB_HELD_MAX);

    scrub_give(&i->down.scrub, &out);
    emit(i, out.buf, out.len);
}

void inspect_download_done(struct inspect *i)
{
    inflater_free(i->down.inflater);
    scrub_stream_done(&i->down.scrub);
    i->down = (struct inspect_download){0};
}

/* Request and response are done: the next request can come. */
static void end_exchange(struct inspect *i)
{
    bool last = i->close || i->up.state != UPLOAD_SENT;

    inspect_record(i, true, i->rules.label, NULL);
    inspect_download_done(i);
    inspect_upload_done(i);
    i->up.state = UPLOAD_NONE;
    i->up.scan = (struct http_scan){0};
    if (last)
        inspect_finish(i);
}

/* Unpacks as much of a packed body as fits in a piece. Returns whether there was anything. */
static bool unpack(struct inspect *i, const char *p, size_t len, size_t *ret_used)
{
    static char plain[INSPECT_PIECE]; /* used by the loop's thread only */
    size_t n;

    if (inflater_feed(i->down.inflater, p, len, ret_used, plain, sizeof(plain), &n) < 0) {
        inspect_abort(i, "the server's packed answer cannot be unpacked");
        return true;
    }
    scrub_and_emit(i, plain, n, false);
    return *ret_used > 0 || n > 0;
}

static bool end_body(struct inspect *i)
{
    size_t used;

    if (i->down.inflater && unpack(i, NULL, 0, &used))
        return true;
    if (i->down.inflater && !i->down.inflater->ended) {
        inspect_abort(i, "the server's packed answer is incomplete");
        return true;
    }
    scrub_and_emit(i, NULL, 0, true);
    if (i->down.written == FRAMING_CHUNKED)
        body_write_end(&i->client.out);
    end_exchange(i);
    return true;
}

static void pass_piece(struct inspect *i, const char *p)
{
    struct body_reader *body = &i->down.body;
    size_t used = body->piece < INSPECT_PIECE ? body->piece : INSPECT_PIECE;

    if (i->down.inflater)
        unpack(i, p, body->piece, &used);
    else
        scrub_and_emit(i, p, used, false);
    if (i->state != INSPECT_OPEN)
        return;
    side_take(&i->server, used);
    body_reader_take(body, used);
}

/* The server has ended the connection within a body. */
static void end_of_server(struct inspect *i)
{
    if (!body_reader_ends_with_connection(&i->down.body) || i->server.broken) {
        inspect_abort(i, "the server closed the connection in the middle of an answer");
        return;
    }
    i->abrupt = i->server.ssl && !i->server.clean; /* somebody in between may have cut it */
    end_body(i);
}

static bool pass_body(struct inspect *i)
{
    struct body_reader *body = &i->down.body;
    size_t len;
    const char *p = side_bytes(&i->server, &len);
    ssize_t n;

    if (!side_has_room(&i->client))
        return false;
    if (body->piece > 0) {
        pass_piece(i, p);
        return true;
    }
    if (body_reader_done(body))
        return end_body(i);
    if (len == 0) {
        if (i->server.eof)
            end_of_server(i);
        return i->server.eof;
    }
    n = body_reader_next(body, p, len);
    if (n < 0)
        inspect_abort(i, "the body of the answer is malformed");
    else
        side_take(&i->server, (size_t)n);
    return true;
}

/* Between requests a server has nothing to send but the end of the connection, so the connection
 * ends if anything comes. */
static bool notice_end(struct inspect *i)
{
    size_t len;

    side_bytes(&i->server, &len);
    if (i->requests == 0 || !(len > 0 || i->server.eof))
        return false;
    inspect_finish(i);
    return true;
}

bool inspect_response_step(struct inspect *i)
{
    switch (i->down.state) {
    case DOWNLOAD_NONE:
        return notice_end(i);
    case DOWNLOAD_HEAD:
        return read_head(i);
    case DOWNLOAD_BODY:
        return pass_body(i);
    }
    return false;
}

/* ---- after a WebSocket's handshake ----------------------------------------------------------- */

static bool pass_up(struct inspect *i)
{
    size_t len;
    const char *p = side_bytes(&i->client, &len);

    if (len == 0 || !side_has_room(&i->server))
        return false;
    len = len < INSPECT_PIECE ? len : INSPECT_PIECE;
    strbuf_add(&i->server.out, p, len);
    side_take(&i->client, len);
    return true;
}

static bool pass_down(struct inspect *i)
{
    size_t len;
    const char *p = side_bytes(&i->server, &len);

    if (len == 0 || !side_has_room(&i->client))
        return false;
    len = len < INSPECT_PIECE ? len : INSPECT_PIECE;
    scrub_and_emit(i, p, len, false);
    side_take(&i->server, len);
    return true;
}

bool inspect_tunnel_step(struct inspect *i)
{
    bool moved = pass_up(i);
    size_t up, down;

    if (pass_down(i) || moved)
        return true;
    side_bytes(&i->client, &up);
    side_bytes(&i->server, &down);
    if (i->server.eof && down == 0) {
        inspect_download_flush(i);
        inspect_finish(i);
        return true;
    }
    if (i->client.eof && up == 0 && side_pending(&i->server) == 0) {
        inspect_finish(i);
        return true;
    }
    return false;
}
