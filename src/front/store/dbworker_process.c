/* One thread polls everything: the front, the connections, the dialler's news. A request waits for
 * a free connection, first come first served, but not for long; then the connection has its time.
 * Together that is what database worker.h promises. */
#include "front/store/dbworker_process.h"

#include <poll.h>
#include <string.h>
#include <sys/socket.h>

#include "lib/base/clock.h"
#include "lib/base/fd.h"
#include "wire/worker.h"
#include "front/store/dbworker_conn.h"
#include "front/store/dbworker_dial.h"

#define NS_PER_MS    1000000ull
#define WAIT_MS      2000 /* for a connection */
#define WORK_MS      3000 /* on one; the server itself gives up after 2.5 s (dbworker_dial.c) */
#define TRIES_MAX    5    /* of a statement that met another */
#define NOTE_EACH_MS 10000

struct process {
    int control; /* to the warden; -1: there is none */
    int sock;    /* to the front; -1: there is none now */
    struct wire_in in;
    struct dial *dial; /* NULL: no front has said where the database is */
    char *conninfo;
    struct conn conns[DBWORKER_CONNECTIONS];
    struct request *first, **last; /* those that wait */
    bool pooled;                   /* what is prepared does not stay */
    char sqlstate[6];              /* of the failure that was logged last */
    uint64_t noted_ns;
};

/* Waits for a front that does not read: there is nobody else to work for, and if it hangs it is
 * ended. That it is gone is seen where it is read. */
static void send_all(struct process *p, enum wire_kind kind, uint64_t seq,
                     const struct strbuf *message)
{
    struct pollfd room = {.fd = p->sock, .events = POLLOUT};
    size_t offset = 0;
    int r = p->sock < 0 ? -EPIPE : 0;

    while (r == 0 || r == -EAGAIN) {
        r = wire_send_next(p->sock, kind, seq, message, &offset, MSG_DONTWAIT);
        if (r == -EAGAIN)
            poll(&room, 1, -1);
    }
}

static void note(struct process *p, bool bad, const char *line)
{
    AUTO(strbuf_done) struct strbuf out = {0};

    strbuf_init(&out, WIRE_MESSAGE_MAX);
    wire_add_u32(&out, bad);
    wire_add_text(&out, line);
    send_all(p, WIRE_NOTE, 0, &out);
}

static _Noreturn void give_up(struct process *p, const char *line)
{
    note(p, true, line);
    worker_say(p->control, WORKER_FAILED, line);
    _exit(1);
}

/* `why` NULL: rows. */
static bool add_answer(struct strbuf *out, const char *why, const PGresult *rows)
{
    int n = rows ? PQntuples(rows) : 0, columns = rows ? PQnfields(rows) : 0;

    wire_add_text(out, why);
    wire_add_u32(out, (uint32_t)n);
    wire_add_u32(out, (uint32_t)columns);
    for (int i = 0; i < n && !out->truncated; i++)
        for (int j = 0; j < columns; j++)
            wire_add_text(out, PQgetisnull(rows, i, j) ? NULL : PQgetvalue(rows, i, j));
    return !out->truncated;
}

/* Frees q. */
static void answer(struct process *p, struct request *q, const char *why, const PGresult *rows)
{
    AUTO(strbuf_done) struct strbuf out = {0};

    strbuf_init(&out, WIRE_MESSAGE_MAX);
    if (!add_answer(&out, why, rows)) {
        strbuf_reset(&out);
        add_answer(&out, "the database's answer is too large", NULL);
    }
    send_all(p, WIRE_ANSWER, q->seq, &out);
    request_free(q);
}

static void drop(struct process *p, struct conn *c, const char *why)
{
    if (c->q)
        answer(p, c->q, why, NULL);
    conn_close(c);
    dial_lost(p->dial);
}

/* ---- what came of a statement ---------------------------------------------------------------- */

/* A failure, by the start of its SQLSTATE, the first that fits. */
static const struct outcome {
    const char *state;
    const char *why;
    enum { SAY, AGAIN, RECONNECT, UNPREPARED } then;
} outcomes[] = {
    {"40", "others change the same rows", AGAIN},
    {"23505", "others change the same rows", AGAIN},
    {"26000", "the connection to the database changed", UNPREPARED}, /* a pooler's doing: what */
    {"42P05", "the connection to the database changed", UNPREPARED}, /* is prepared is not ours */
    {"25006", "the database is read-only", RECONNECT}, /* it may not be at the next address */
    {"57014", "the database is too slow", SAY},
    {"55P03", "the database is too slow", SAY},
    {"53", "the database has no room", SAY},
    {"42501", "the database does not let this server in", RECONNECT},
    {"42", "the database's schema is not as it should be", RECONNECT}, /* which looks at it */
    {"3F", "the database's schema is not as it should be", RECONNECT},
    {"57", "the database is going down", RECONNECT},
    {"", "the database refuses the statement", SAY},
};

static const struct outcome *outcome_of(const char *state)
{
    const struct outcome *o = outcomes;

    while (strncmp(o->state, state, strlen(o->state)) != 0)
        o++;
    return o;
}

/* Not each time: a database that is in trouble fails everything. */
static void note_failure(struct process *p, const char *state, const PGresult *failure)
{
    const char *said = PQresultErrorField(failure, PG_DIAG_MESSAGE_PRIMARY);
    uint64_t now = clock_ns();
    char line[400];

    if (strcmp(p->sqlstate, state) == 0 && now - p->noted_ns < NOTE_EACH_MS * NS_PER_MS)
        return;
    snprintf(p->sqlstate, sizeof p->sqlstate, "%s", state);
    p->noted_ns = now;
    snprintf(line, sizeof line, "store: a statement failed: %.300s (SQLSTATE %.5s)",
             said ? said : "no reason given", state);
    note(p, true, line);
}

static void wait_first(struct process *p, struct request *q)
{
    q->next = p->first;
    if (!p->first)
        p->last = &q->next;
    p->first = q;
}

static void failed(struct process *p, struct conn *c)
{
    const char *state = PQresultErrorField(c->failure, PG_DIAG_SQLSTATE);
    const struct outcome *o = outcome_of(state ? state : "");
    struct request *q = c->q;

    if (o->then == UNPREPARED)
        p->pooled = true;
    if ((o->then == AGAIN || o->then == UNPREPARED) && ++q->tries < TRIES_MAX) {
        conn_end(c);
        wait_first(p, q);
    } else {
        note_failure(p, state ? state : "", c->failure);
        answer(p, q, o->why, NULL);
        conn_end(c);
    }
    if (o->then == RECONNECT || o->then == UNPREPARED)
        drop(p, c, o->why);
}

static void go_on(struct process *p, struct conn *c)
{
    int r = conn_continue(c);

    if (r < 0) {
        drop(p, c, "the connection to the database broke");
    } else if (r > 0 && c->failure) {
        failed(p, c);
    } else if (r > 0) {
        answer(p, c->q, NULL, c->rows);
        conn_end(c);
    }
}

/* ---- requests -------------------------------------------------------------------------------- */

static struct request *take_first(struct process *p)
{
    struct request *q = p->first;

    p->first = q->next;
    if (!p->first)
        p->last = &p->first;
    return q;
}

static void start_waiting(struct process *p)
{
    for (size_t i = 0; i < DBWORKER_CONNECTIONS && p->first; i++) {
        struct conn *c = &p->conns[i];

        if (!c->pg || c->q)
            continue;
        if (conn_begin(c, take_first(p), !p->pooled, clock_ns() + WORK_MS * NS_PER_MS) < 0)
            drop(p, c, "the connection to the database broke");
    }
}

static bool connected(const struct process *p)
{
    for (size_t i = 0; i < DBWORKER_CONNECTIONS; i++)
        if (p->conns[i].pg)
            return true;
    return false;
}

static void refuse_waiting(struct process *p)
{
    char trouble[DIAL_TROUBLE_MAX];

    if (!p->first)
        return;
    if (!connected(p)) {
        dial_trouble(p->dial, trouble);
        while (*trouble && p->first)
            answer(p, take_first(p), trouble, NULL);
    }
    while (p->first && clock_ns() - p->first->came_ns > WAIT_MS * NS_PER_MS)
        answer(p, take_first(p), "the database is too slow", NULL);
}

static void drop_late(struct process *p)
{
    for (size_t i = 0; i < DBWORKER_CONNECTIONS; i++)
        if (p->conns[i].q && clock_ns() > p->conns[i].deadline_ns)
            drop(p, &p->conns[i], "the database does not answer");
}

/* What the front asked for that is gone, nobody waits for. A connection that is at it is not used
 * for another's. */
static void forget_front(struct process *p)
{
    if (p->control < 0)
        _exit(0);
    wire_in_done(&p->in);
    close_p(&p->sock);
    p->sock = -1;
    while (p->first)
        request_free(take_first(p));
    for (size_t i = 0; i < DBWORKER_CONNECTIONS; i++)
        if (p->conns[i].q) {
            request_free(p->conns[i].q);
            p->conns[i].q = NULL;
            conn_close(&p->conns[i]);
            dial_lost(p->dial);
        }
}

/* Each front says it first; that it does not change while a server runs is looked at all the same.
 */
static void take_address(struct process *p)
{
    struct wire_reader r = {.at = p->in.buf, .end = p->in.buf + p->in.len};
    const char *conninfo = wire_read_text(&r);
    struct sg_error e;
    char line[600];

    if (!conninfo || (p->conninfo && strcmp(p->conninfo, conninfo) != 0))
        give_up(p, "store: the front sent the clerk what is no address");
    if (!p->dial && dial_start(conninfo, &p->dial, &e) < 0) {
        snprintf(line, sizeof line, "store: %s", e.message);
        give_up(p, line);
    }
    if (!p->conninfo)
        p->conninfo = xstrdup(conninfo);
    worker_say(p->control, WORKER_READY, NULL);
    wire_in_done(&p->in);
}

static void take_message(struct process *p)
{
    struct request *q = NULL;

    if (p->in.head.kind == WIRE_CONNECT) {
        take_address(p);
        return;
    }
    if (!p->dial)
        give_up(p, "store: the front sent the clerk a request before an address");
    if (p->in.head.kind != WIRE_CALL || !(q = request_read(&p->in)))
        give_up(p, "store: the front sent the clerk what is no request");
    q->came_ns = clock_ns();
    q->next = NULL;
    *p->last = q;
    p->last = &q->next;
}

static void take_messages(struct process *p)
{
    int r;

    if (p->sock < 0)
        return;
    while ((r = wire_receive(p->sock, &p->in, MSG_DONTWAIT)) >= 0)
        if (r > 0)
            take_message(p);
    if (r == -EPIPE)
        forget_front(p);
    else if (r != -EAGAIN)
        give_up(p, "store: the front sent the clerk what is no message");
}

/* ---- the loop -------------------------------------------------------------------------------- */

static void take_news(struct process *p)
{
    char line[DIAL_NOTE_MAX];
    bool bad;

    dial_clear(p->dial);
    if (dial_note(p->dial, line, &bad))
        note(p, bad, line);
    for (size_t i = 0; i < DBWORKER_CONNECTIONS; i++) {
        PGconn *pg = p->conns[i].pg ? NULL : dial_take(p->dial);

        if (pg && !conn_open(&p->conns[i], pg))
            dial_lost(p->dial);
    }
}

/* When something is due, for poll(2). */
static int due_ms(const struct process *p)
{
    uint64_t due = p->first ? p->first->came_ns + WAIT_MS * NS_PER_MS : UINT64_MAX;

    for (size_t i = 0; i < DBWORKER_CONNECTIONS; i++)
        if (p->conns[i].q && p->conns[i].deadline_ns < due)
            due = p->conns[i].deadline_ns;
    return due == UINT64_MAX ? -1 : clock_poll_ms(due) + 1;
}

static void take_word(struct process *p)
{
    int front = worker_take(p->control);

    if (front < 0)
        return;
    if (p->sock >= 0)
        forget_front(p);
    p->sock = front;
}

static void serve_once(struct process *p)
{
    enum { WARDEN, FRONT, NEWS, CONNS };
    struct pollfd fds[CONNS + DBWORKER_CONNECTIONS] = {
        [WARDEN] = {.fd = p->control, .events = POLLIN},
        [FRONT] = {.fd = p->sock, .events = POLLIN},
        [NEWS] = {.fd = p->dial ? dial_fd(p->dial) : -1, .events = POLLIN},
    };

    for (size_t i = 0; i < DBWORKER_CONNECTIONS; i++)
        fds[CONNS + i] = (struct pollfd){.fd = p->conns[i].pg ? PQsocket(p->conns[i].pg) : -1,
                                         .events = conn_events(&p->conns[i])};
    if (poll(fds, ARRAY_SIZE(fds), due_ms(p)) < 0)
        return;
    for (size_t i = 0; i < DBWORKER_CONNECTIONS; i++)
        if (p->conns[i].pg && fds[CONNS + i].revents)
            go_on(p, &p->conns[i]);
    if (fds[NEWS].revents)
        take_news(p);
    if (fds[FRONT].revents)
        take_messages(p);
    if (fds[WARDEN].revents)
        take_word(p);
    drop_late(p);
    start_waiting(p);
    refuse_waiting(p);
}

_Noreturn void dbworker_process(int control, int front, int (*confine)(struct sg_error *e))
{
    struct process p = {.control = control, .sock = front};
    struct sg_error e;

    p.last = &p.first;
    if (confine && confine(&e) < 0)
        give_up(&p, e.message);
    for (;;)
        serve_once(&p);
}
