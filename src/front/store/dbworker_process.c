/* One thread polls everything: the front, the connections, news of the dialling thread. A request
 * waits for a free connection, first come first served, WAIT_MS at most; then the connection has
 * WORK_MS for it. Together these are the 5 seconds that dbworker.h promises. */
#include "front/store/dbworker_process.h"

#include <poll.h>
#include <string.h>

#include "lib/base/clock.h"
#include "lib/base/fd.h"
#include "wire/worker.h"
#include "front/store/dbworker_conn.h"
#include "front/store/dbworker_dial.h"

#define NS_PER_MS    1000000ull
#define WAIT_MS      2000 /* for a free connection */
#define WORK_MS      3000 /* for an answer; PostgreSQL gives up after 2.5 s (dbworker_dial.c) */
#define TRIES_MAX    5    /* of a statement that conflicts with another */
#define NOTE_EACH_MS 10000

struct process {
    int control; /* to the warden; -1: there is none */
    int sock;    /* to the front; -1: there is none now */
    struct wire_in in;
    struct dial *dial; /* NULL: no front has said where the database is */
    char *conninfo;
    struct conn conns[DBWORKER_CONNECTIONS];
    struct list waiting; /* the requests that wait for a connection */
    bool pooled;         /* behind a pooler: prepared statements do not stay */
    char sqlstate[6];    /* of the last failure that was logged */
    uint64_t noted_ns;
};

/* Sends the whole message, and waits if the front does not read: there is nobody else to work for,
 * and the warden ends a front that hangs. Reading notices when the front is gone. */
static void send_all(struct process *p, enum wire_kind kind, uint64_t seq,
                     const struct strbuf *message)
{
    struct pollfd room = {.fd = p->sock, .events = POLLOUT};
    size_t offset = 0;
    int r = p->sock < 0 ? -EPIPE : 0;

    while (r == 0 || r == -EAGAIN) {
        r = wire_send_next(p->sock, kind, seq, message, &offset);
        if (r == -EAGAIN)
            poll(&room, 1, -1);
    }
}

static void note(struct process *p, bool bad, const char *line)
{
    AUTO(strbuf_done) struct strbuf out = strbuf_upto(WIRE_MESSAGE_MAX);

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

/* Adds the reason `why` or, if it is NULL, the rows. */
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

/* Answers the request, and frees q. */
static void answer(struct process *p, struct request *q, const char *why, const PGresult *rows)
{
    AUTO(strbuf_done) struct strbuf out = strbuf_upto(WIRE_MESSAGE_MAX);

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

/* ---- the outcome of a statement -------------------------------------------------------------- */

/* Decides how to go on after a failure: the first entry whose `state` begins its SQLSTATE. */
static const struct outcome {
    const char *state;
    const char *why;
    enum { SAY, AGAIN, RECONNECT, UNPREPARED } then;
} outcomes[] = {
    {"40", "other requests change the same rows", AGAIN},
    {"23505", "other requests change the same rows", AGAIN},
    {"26000", "the connection to the database changed", UNPREPARED}, /* a pooler: the prepared */
    {"42P05", "the connection to the database changed", UNPREPARED}, /* statements are not ours */
    {"25006", "the database is read-only", RECONNECT}, /* the next address may be writable */
    {"57014", "the database is too slow", SAY},
    {"55P03", "the database is too slow", SAY},
    {"53", "the database has no room", SAY},
    {"42501", "the database refuses this server's login", RECONNECT},
    {"42", "the database's schema is not as it should be", RECONNECT}, /* a dial checks it */
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

/* Logs a failure, but not each time: a database in trouble fails every statement. */
static void note_failure(struct process *p, const char *state, const PGresult *failure)
{
    const char *said = PQresultErrorField(failure, PG_DIAG_MESSAGE_PRIMARY);
    uint64_t now = clock_ns();
    char line[400];

    if (strcmp(p->sqlstate, state) == 0 && now - p->noted_ns < NOTE_EACH_MS * NS_PER_MS)
        return;
    snprintf(p->sqlstate, sizeof(p->sqlstate), "%s", state);
    p->noted_ns = now;
    snprintf(line, sizeof(line), "store: a statement failed: %.300s (SQLSTATE %.5s)",
             said ? said : "no reason given", state);
    note(p, true, line);
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
        list_push(&p->waiting, &q->link);
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
    return LIST_POP(struct request, &p->waiting, link);
}

static void start_waiting(struct process *p)
{
    for (size_t i = 0; i < DBWORKER_CONNECTIONS && !list_empty(&p->waiting); i++) {
        struct conn *c = &p->conns[i];

        if (c->pg && !c->q &&
            conn_begin(c, take_first(p), !p->pooled, clock_ns() + WORK_MS * NS_PER_MS) < 0)
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
    struct request *q;

    if (list_empty(&p->waiting))
        return;
    if (!connected(p)) {
        dial_trouble(p->dial, trouble);
        while (*trouble && (q = take_first(p)))
            answer(p, q, trouble, NULL);
    }
    while ((q = LIST_FIRST(struct request, &p->waiting, link)) &&
           clock_ns() - q->came_ns > WAIT_MS * NS_PER_MS)
        answer(p, take_first(p), "the database is too slow", NULL);
}

static void drop_late(struct process *p)
{
    for (size_t i = 0; i < DBWORKER_CONNECTIONS; i++)
        if (p->conns[i].q && clock_ns() > p->conns[i].deadline_ns)
            drop(p, &p->conns[i], "the database does not answer");
}

/* Drops the requests of a front that is gone: nobody waits for the answers. Closes the connections
 * that work on them, since another front must not get those answers. */
static void forget_front(struct process *p)
{
    if (p->control < 0)
        _exit(0);
    wire_in_done(&p->in);
    close_p(&p->sock);
    p->sock = -1;
    for (struct request *q; (q = take_first(p));)
        request_free(q);
    for (size_t i = 0; i < DBWORKER_CONNECTIONS; i++)
        if (p->conns[i].q) {
            request_free(p->conns[i].q);
            p->conns[i].q = NULL;
            conn_close(&p->conns[i]);
            dial_lost(p->dial);
        }
}

/* Takes the address of the database, the first message of each front. The address does not change
 * while a server runs; if it does all the same, the process gives up. */
static void take_address(struct process *p)
{
    struct wire_reader r = {.at = p->in.buf, .end = p->in.buf + p->in.len};
    const char *conninfo = wire_read_text(&r);
    struct sg_error e;
    char line[600];

    if (!conninfo || (p->conninfo && strcmp(p->conninfo, conninfo) != 0))
        give_up(p, "store: the front sent the clerk a malformed address");
    if (!p->dial && dial_start(conninfo, &p->dial, &e) < 0) {
        snprintf(line, sizeof(line), "store: %s", e.message);
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
        give_up(p, "store: the front sent the clerk a malformed request");
    q->came_ns = clock_ns();
    list_append(&p->waiting, &q->link);
}

static void take_messages(struct process *p)
{
    int r;

    if (p->sock < 0)
        return;
    while ((r = wire_receive(p->sock, &p->in)) >= 0)
        if (r > 0)
            take_message(p);
    if (r == -EPIPE)
        forget_front(p);
    else if (r != -EAGAIN)
        give_up(p, "store: the front sent the clerk a malformed message");
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

/* When the next deadline is, for poll(2). */
static int due_ms(const struct process *p)
{
    const struct request *first = LIST_FIRST(struct request, &p->waiting, link);
    uint64_t due = first ? first->came_ns + WAIT_MS * NS_PER_MS : UINT64_MAX;

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

    fd_set_nonblock(front, true);
    if (confine && confine(&e) < 0)
        give_up(&p, e.message);
    for (;;)
        serve_once(&p);
}
