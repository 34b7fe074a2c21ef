#include "front/store/dbworker.h"

#include <assert.h>
#include <string.h>

#include "lib/base/fd.h"
#include "lib/base/list.h"
#include "front/store/dbworker_wire.h"
#include "front/store/contexts_common.h"
#include "lib/uv/handle.h"

#define READS_MAX 64 /* messages read in one go, so that other handles get their turn */
#define GONE      "the database cannot be reached"

/* A message that is not completely sent yet. */
struct outgoing {
    enum wire_kind kind;
    uint64_t seq;
    struct strbuf message;
    size_t offset;
    struct list link;
};

/* A call that waits for its answer. The slot's number is the lower part of seq, so that an answer
 * finds its slot. */
struct slot {
    uint64_t seq; /* 0: free */
    bool sent;    /* at least a part of the message was sent */
    dbworker_done done;
    void *arg;
};

/* A call that is refused at once: its callback still has to come from the loop. */
struct refusal {
    dbworker_done done;
    void *arg;
    const char *why;
    struct list link;
};

struct dbworker {
    void (*log)(bool bad, const char *line);
    uv_loop_t *loop;
    uv_poll_t *watch; /* NULL: there is no database worker now */
    int sock;
    uv_async_t wake; /* delivers refusals */
    uv_timer_t away; /* runs while there is no database worker: calls wait so long */
    int handles;     /* of the loop, that are not closed yet */
    bool refusing, dismissed;
    char *conninfo; /* NULL: the front does not know it yet */
    struct wire_in in;
    struct list out, refused;
    uint64_t calls;
    struct slot slots[DBWORKER_CALLS_MAX];
    uint32_t free_slots[DBWORKER_CALLS_MAX], n_free;
};

static void answer_refusal(dbworker_done done, void *arg, const char *why)
{
    struct dbworker_rows rows = {0};

    rows.r = ctx_error_unavailable(&rows.e, why);
    done(arg, &rows);
}

/* ---- sending --------------------------------------------------------------------------------- */

static void on_ready(uv_poll_t *poll, int status, int events);

static void watch(struct dbworker *c)
{
    if (c->watch)
        watch_for(c->watch, UV_READABLE | (list_empty(&c->out) ? 0 : UV_WRITABLE), on_ready);
}

static void outgoing_free(struct outgoing *o)
{
    list_remove(&o->link);
    explicit_bzero(o->message.buf, o->message.len);
    strbuf_done(&o->message);
    free(o);
}

static void send_queued(struct dbworker *c)
{
    for (struct outgoing *o; c->watch && (o = LIST_FIRST(struct outgoing, &c->out, link));) {
        int r = wire_send_next(c->sock, o->kind, o->seq, &o->message, &o->offset);

        /* Any error but -EAGAIN means that the database worker is gone; reading will find out. */
        if (o->seq && (r >= 0 || r != -EAGAIN))
            c->slots[o->seq % DBWORKER_CALLS_MAX].sent = true;
        if (r == -EAGAIN)
            break;
        if (r != 0)
            outgoing_free(o);
    }
    watch(c);
}

static struct outgoing *outgoing_new(enum wire_kind kind, uint64_t seq)
{
    return NEW(struct outgoing, .kind = kind, .seq = seq, .message = strbuf_upto(WIRE_MESSAGE_MAX));
}

/* ---- calls ----------------------------------------------------------------------------------- */

static void refuse(struct dbworker *c, dbworker_done done, void *arg, const char *why)
{
    struct refusal *f = NEW(struct refusal, .done = done, .arg = arg, .why = why);

    list_append(&c->refused, &f->link);
    uv_async_send(&c->wake);
}

static void on_wake(uv_async_t *wake)
{
    struct dbworker *c = wake->data;
    struct list refused = {0};

    list_move(&c->refused, &refused);
    for (struct refusal *f; (f = LIST_POP(struct refusal, &refused, link)); free(f))
        answer_refusal(f->done, f->arg, f->why);
}

static uint64_t take_slot(struct dbworker *c, dbworker_done done, void *arg)
{
    uint32_t i = c->free_slots[--c->n_free];

    c->slots[i] =
        (struct slot){.seq = ++c->calls * DBWORKER_CALLS_MAX + i, .done = done, .arg = arg};
    return c->slots[i].seq;
}

static void free_slot(struct dbworker *c, struct slot *s)
{
    s->seq = 0;
    c->free_slots[c->n_free++] = (uint32_t)(s - c->slots);
}

void dbworker_call(struct dbworker *c, const char *statement, const char *tenant,
                   const char *const *params, size_t n, dbworker_done done, void *arg)
{
    assert(c->conninfo && !c->dismissed && n <= DBWORKER_PARAMS_MAX);
    if (c->refusing) {
        refuse(c, done, arg, GONE);
        return;
    }
    if (c->n_free == 0) {
        refuse(c, done, arg, "too many requests wait for the database");
        return;
    }
    struct outgoing *o = outgoing_new(WIRE_CALL, 0);
    wire_add_text(&o->message, statement);
    wire_add_text(&o->message, tenant);
    wire_add_u32(&o->message, (uint32_t)n);
    for (size_t i = 0; i < n; i++)
        wire_add_text(&o->message, params[i]);
    if (o->message.truncated) {
        outgoing_free(o);
        refuse(c, done, arg, "the request is too large for the database");
        return;
    }
    o->seq = take_slot(c, done, arg);
    list_append(&c->out, &o->link);
    send_queued(c);
}

/* ---- answers --------------------------------------------------------------------------------- */

static void fail_calls(struct dbworker *c, bool sent_only, const char *why)
{
    for (size_t i = 0; i < DBWORKER_CALLS_MAX; i++) {
        struct slot s = c->slots[i];

        if (!s.seq || (sent_only && !s.sent))
            continue;
        free_slot(c, &c->slots[i]);
        answer_refusal(s.done, s.arg, why);
    }
}

/* Drops the messages that nobody waits for any more, and the rest of a message that was sent in
 * part. */
static void drop_unwanted(struct dbworker *c)
{
    LIST_EACH(struct outgoing, o, &c->out, link) {
        const struct slot *s = &c->slots[o->seq % DBWORKER_CALLS_MAX];

        if (!o->seq || s->seq != o->seq || s->sent)
            outgoing_free(o);
    }
}

static void hang_up(struct dbworker *c)
{
    if (!c->watch)
        return;
    watch_drop(&c->watch);
    close(c->sock);
    wire_in_done(&c->in);
}

static void on_away(uv_timer_t *timer)
{
    struct dbworker *c = timer->data;

    c->refusing = true;
    fail_calls(c, false, GONE);
    drop_unwanted(c);
}

static void dbworker_gone(struct dbworker *c, const char *why)
{
    char line[160];

    snprintf(line, sizeof(line), "store: the clerk, which speaks with the database, %s", why);
    c->log(true, line);
    hang_up(c);
    uv_timer_start(&c->away, on_away, DBWORKER_AWAY_MS, 0);
    fail_calls(c, true, GONE);
    drop_unwanted(c);
}

/* Reads the cells, which stay in the message. False: the message does not have the cells it
 * claims. */
static bool read_cells(struct wire_reader *r, struct dbworker_rows *rows, const char ***ret)
{
    size_t n = wire_read_u32(r), columns = wire_read_u32(r);

    /* A cell takes at least 4 bytes. */
    if (r->bad || (columns > 0 && n > (size_t)(r->end - r->at) / 4 / columns))
        return false;
    const char **cells = xcalloc(n * columns + 1, sizeof(*cells));
    for (size_t i = 0; i < n * columns; i++)
        cells[i] = wire_read_text(r);
    *ret = cells;
    rows->n = n;
    rows->columns = columns;
    rows->cells = cells;
    return !r->bad && r->at == r->end;
}

static bool take_answer(struct dbworker *c)
{
    struct wire_in in = c->in;
    struct wire_reader r = {.at = in.buf, .end = in.buf + in.len};
    struct dbworker_rows rows = {0};
    struct slot *s = &c->slots[in.head.seq % DBWORKER_CALLS_MAX], waits = *s;
    AUTO(free_p) const char **cells = NULL;

    if (waits.seq == 0 || waits.seq != in.head.seq)
        return false;
    const char *why = wire_read_text(&r);
    if (!read_cells(&r, &rows, &cells))
        return false;
    if (why)
        rows.r = ctx_error_unavailable(&rows.e, why);
    free_slot(c, s);
    /* The callback may make further calls, or even dismiss the database worker: from here on only
     * local variables are used. */
    c->in = (struct wire_in){0};
    waits.done(waits.arg, &rows);
    wire_in_done(&in);
    return true;
}

static bool take_note(struct dbworker *c)
{
    struct wire_reader r = {.at = c->in.buf, .end = c->in.buf + c->in.len};
    bool bad = wire_read_u32(&r) != 0;
    const char *line = wire_read_text(&r);

    if (!line)
        return false;
    c->log(bad, line);
    wire_in_done(&c->in);
    return true;
}

static bool take_message(struct dbworker *c)
{
    switch ((enum wire_kind)c->in.head.kind) {
    case WIRE_ANSWER:
        return take_answer(c);
    case WIRE_NOTE:
        return take_note(c);
    case WIRE_CONNECT:
    case WIRE_CALL:
    case WIRE_MAX_:
        break;
    }
    return false;
}

static void on_ready(uv_poll_t *poll, int status UNUSED, int events)
{
    struct dbworker *c = poll->data;

    if (events & UV_WRITABLE)
        send_queued(c);
    /* Handling an answer may hang up, which ends the loop. */
    for (int i = 0; i < READS_MAX && c->watch == poll; i++) {
        int r = wire_receive(c->sock, &c->in);

        if (r == -EAGAIN)
            return;
        if (r == 0 || (r > 0 && take_message(c)))
            continue;
        dbworker_gone(c, r == -EPIPE ? "has ended" : "sent a malformed message");
    }
}

/* ---- begin and end --------------------------------------------------------------------------- */

struct dbworker *dbworker_new(uv_loop_t *loop, void (*log)(bool bad, const char *line))
{
    struct dbworker *c = NEW(struct dbworker, .log = log, .loop = loop, .handles = 2);

    while (c->n_free < DBWORKER_CALLS_MAX) {
        c->free_slots[c->n_free] = DBWORKER_CALLS_MAX - 1 - c->n_free;
        c->n_free++;
    }
    int r = uv_async_init(loop, &c->wake, on_wake);
    assert(r == 0);
    r = uv_timer_init(loop, &c->away);
    assert(r == 0);
    c->wake.data = c->away.data = c;
    return c;
}

/* Sends the address before all messages that wait. */
static void tell_address(struct dbworker *c)
{
    struct outgoing *o = outgoing_new(WIRE_CONNECT, 0);

    wire_add_text(&o->message, c->conninfo);
    list_push(&c->out, &o->link);
    send_queued(c);
}

void dbworker_set_socket(struct dbworker *c, int sock)
{
    if (c->watch) {
        hang_up(c);
        fail_calls(c, true, GONE);
        drop_unwanted(c);
    }
    c->sock = sock;
    fd_set_nonblock(sock, true);
    c->watch = watch_new(c->loop, sock, c);
    c->refusing = false;
    uv_timer_stop(&c->away);
    watch(c);
    if (c->conninfo)
        tell_address(c);
}

void dbworker_connect(struct dbworker *c, const char *conninfo)
{
    assert(!c->conninfo);
    c->conninfo = xstrdup(conninfo);
    if (c->watch)
        tell_address(c);
    else
        uv_timer_start(&c->away, on_away, DBWORKER_AWAY_MS, 0);
}

static void dbworker_free(struct dbworker *c)
{
    if (c->conninfo)
        explicit_bzero(c->conninfo, strlen(c->conninfo));
    free(c->conninfo);
    free(c);
}

static void on_closed(uv_handle_t *handle)
{
    struct dbworker *c = handle->data;

    if (--c->handles == 0)
        dbworker_free(c);
}

void dbworker_dismiss(struct dbworker *c)
{
    c->dismissed = true;
    hang_up(c);
    uv_close((uv_handle_t *)&c->wake, on_closed);
    uv_close((uv_handle_t *)&c->away, on_closed);
    fail_calls(c, false, "the server is shutting down");
    drop_unwanted(c);
    on_wake(&c->wake);
}
