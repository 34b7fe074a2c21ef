#include "store/clerk.h"

#include <assert.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "base/sys.h"
#include "store/clerk_process.h"
#include "store/clerk_wire.h"
#include "store/contexts_common.h"

#define CLERK_FD  3  /* in the clerk: the only one beside the standard ones */
#define READS_MAX 64 /* in one go: others have their turn as well */

/* A message that is not wholly sent. */
struct outgoing {
    enum wire_kind kind;
    uint64_t seq;
    struct strbuf message;
    size_t offset;
    struct outgoing *next;
};

/* Who waits. A slot's number is the lower part of the seq, so an answer finds it. */
struct slot {
    uint64_t seq; /* 0: free */
    clerk_done done;
    void *arg;
};

/* A call that was not made: its answer comes from the loop too. */
struct refusal {
    clerk_done done;
    void *arg;
    const char *why;
    struct refusal *next;
};

struct clerk {
    struct clerk_hooks hooks;
    pid_t pid;
    int sock;
    uv_loop_t *loop; /* NULL: not connected */
    uv_poll_t poll;
    uv_async_t wake; /* refusals */
    int handles;     /* of the loop, not closed yet */
    int events;
    bool gone, dismissed;
    struct wire_in in;
    struct outgoing *out, **out_last;
    struct refusal *refused, **refused_last;
    uint64_t calls;
    struct slot slots[CLERK_CALLS_MAX];
    uint32_t free_slots[CLERK_CALLS_MAX], n_free;
};

static void answer_refusal(clerk_done done, void *arg, const char *why)
{
    struct clerk_rows rows = {0};

    rows.r = ctx_error_unavailable(&rows.e, why);
    done(arg, &rows);
}

/* ---- the process ------------------------------------------------------------------------------
 */

static _Noreturn void be_clerk(int sock, pid_t parent, const struct clerk_hooks *hooks)
{
    prctl(PR_SET_NAME, "sandglass-clerk");
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent || dup2(sock, CLERK_FD) < 0)
        _exit(1);
    sys_close_range(CLERK_FD + 1, UINT32_MAX, 0);
    signal(SIGPIPE, SIG_IGN);
    clerk_process(CLERK_FD, hooks->confine);
}

struct clerk *clerk_adopt(const struct clerk_hooks *hooks, int sock, pid_t pid)
{
    struct clerk *c = xcalloc(1, sizeof *c);

    c->hooks = *hooks;
    c->pid = pid;
    c->sock = sock;
    c->out_last = &c->out;
    c->refused_last = &c->refused;
    while (c->n_free < CLERK_CALLS_MAX) {
        c->free_slots[c->n_free] = CLERK_CALLS_MAX - 1 - c->n_free;
        c->n_free++;
    }
    return c;
}

int clerk_start(const struct clerk_hooks *hooks, struct clerk **ret, struct sg_error *e)
{
    int pair[2];
    pid_t parent = getpid();

    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
        return err_errno(e, "make a socket for the clerk");
    pid_t pid = fork();
    if (pid == 0)
        be_clerk(pair[1], parent, hooks);
    close(pair[1]);
    if (pid < 0) {
        close(pair[0]);
        return err_errno(e, "start the clerk");
    }
    *ret = clerk_adopt(hooks, pair[0], pid);
    return 0;
}

/* ---- sending ----------------------------------------------------------------------------------
 */

static void on_ready(uv_poll_t *poll, int status, int events);

static void watch(struct clerk *c)
{
    int events = UV_READABLE | (c->out ? UV_WRITABLE : 0);

    if (!c->gone && events != c->events && uv_poll_start(&c->poll, events, on_ready) == 0)
        c->events = events;
}

static void outgoing_free(struct outgoing *o)
{
    explicit_bzero(o->message.buf, o->message.len);
    strbuf_done(&o->message);
    free(o);
}

static void send_queued(struct clerk *c)
{
    while (c->out) {
        struct outgoing *o = c->out;
        int r = wire_send_next(c->sock, o->kind, o->seq, &o->message, &o->offset, MSG_DONTWAIT);

        /* If it fails otherwise the clerk is gone, which reading will tell. */
        if (r == -EAGAIN)
            break;
        if (r == 0)
            continue;
        c->out = o->next;
        if (!c->out)
            c->out_last = &c->out;
        outgoing_free(o);
    }
    watch(c);
}

static struct outgoing *outgoing_new(enum wire_kind kind, uint64_t seq)
{
    struct outgoing *o = xcalloc(1, sizeof *o);

    *o = (struct outgoing){.kind = kind, .seq = seq};
    strbuf_init(&o->message, WIRE_MESSAGE_MAX);
    return o;
}

static void enqueue(struct clerk *c, struct outgoing *o)
{
    *c->out_last = o;
    c->out_last = &o->next;
    send_queued(c);
}

/* ---- calls ------------------------------------------------------------------------------------
 */

static void refuse(struct clerk *c, clerk_done done, void *arg, const char *why)
{
    struct refusal *f = xcalloc(1, sizeof *f);

    *f = (struct refusal){.done = done, .arg = arg, .why = why};
    *c->refused_last = f;
    c->refused_last = &f->next;
    uv_async_send(&c->wake);
}

static void on_wake(uv_async_t *wake)
{
    struct clerk *c = wake->data;
    struct refusal *f = c->refused;

    c->refused = NULL;
    c->refused_last = &c->refused;
    while (f) {
        struct refusal *next = f->next;

        answer_refusal(f->done, f->arg, f->why);
        free(f);
        f = next;
    }
}

static uint64_t take_slot(struct clerk *c, clerk_done done, void *arg)
{
    uint32_t i = c->free_slots[--c->n_free];

    c->slots[i] = (struct slot){.seq = ++c->calls * CLERK_CALLS_MAX + i, .done = done, .arg = arg};
    return c->slots[i].seq;
}

static void free_slot(struct clerk *c, struct slot *s)
{
    s->seq = 0;
    c->free_slots[c->n_free++] = (uint32_t)(s - c->slots);
}

void clerk_call(struct clerk *c, const char *statement, const char *tenant,
                const char *const *params, size_t n, clerk_done done, void *arg)
{
    assert(c->loop && !c->dismissed && n <= CLERK_PARAMS_MAX);
    if (c->gone) {
        refuse(c, done, arg, "the database cannot be reached");
        return;
    }
    if (c->n_free == 0) {
        refuse(c, done, arg, "too many wait for the database");
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
        refuse(c, done, arg, "this is too large for the database");
        return;
    }
    o->seq = take_slot(c, done, arg);
    enqueue(c, o);
}

/* ---- answers ----------------------------------------------------------------------------------
 */

static void fail_calls(struct clerk *c, const char *why)
{
    for (size_t i = 0; i < CLERK_CALLS_MAX; i++) {
        struct slot s = c->slots[i];

        if (!s.seq)
            continue;
        free_slot(c, &c->slots[i]);
        answer_refusal(s.done, s.arg, why);
    }
}

static void clerk_gone(struct clerk *c, const char *why)
{
    char line[160];

    c->gone = true;
    uv_poll_stop(&c->poll);
    snprintf(line, sizeof line, "store: the clerk, which speaks with the database, %s", why);
    c->hooks.log(true, line);
    fail_calls(c, "the database cannot be reached");
    c->hooks.gone();
}

/* Reads the cells in place. False: they are not what they say. */
static bool read_cells(struct wire_reader *r, struct clerk_rows *rows, const char ***ret)
{
    size_t n = wire_read_u32(r), columns = wire_read_u32(r);

    /* Each takes 4 bytes at least. */
    if (r->bad || (columns > 0 && n > (size_t)(r->end - r->at) / 4 / columns))
        return false;
    const char **cells = xcalloc(n * columns + 1, sizeof *cells);
    for (size_t i = 0; i < n * columns; i++)
        cells[i] = wire_read_text(r);
    *ret = cells;
    rows->n = n;
    rows->columns = columns;
    rows->cells = cells;
    return !r->bad && r->at == r->end;
}

static bool take_answer(struct clerk *c)
{
    struct wire_in in = c->in;
    struct wire_reader r = {.at = in.buf, .end = in.buf + in.len};
    struct clerk_rows rows = {0};
    struct slot *s = &c->slots[in.head.seq % CLERK_CALLS_MAX], waits = *s;
    AUTO(free_p) const char **cells = NULL;

    if (waits.seq == 0 || waits.seq != in.head.seq)
        return false;
    const char *why = wire_read_text(&r);
    if (!read_cells(&r, &rows, &cells))
        return false;
    if (why)
        rows.r = ctx_error_unavailable(&rows.e, why);
    free_slot(c, s);
    /* The callback may call again, and even dismiss: what is used here is not the clerk's. */
    c->in = (struct wire_in){0};
    waits.done(waits.arg, &rows);
    wire_in_done(&in);
    return true;
}

static bool take_note(struct clerk *c)
{
    struct wire_reader r = {.at = c->in.buf, .end = c->in.buf + c->in.len};
    bool bad = wire_read_u32(&r) != 0;
    const char *line = wire_read_text(&r);

    if (!line)
        return false;
    c->hooks.log(bad, line);
    wire_in_done(&c->in);
    return true;
}

static bool take_message(struct clerk *c)
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

static void on_ready(uv_poll_t *poll, int status, int events)
{
    struct clerk *c = poll->data;

    (void)status;
    if (events & UV_WRITABLE)
        send_queued(c);
    for (int i = 0; i < READS_MAX && !c->gone && !c->dismissed; i++) {
        int r = wire_receive(c->sock, &c->in, MSG_DONTWAIT);

        if (r == -EAGAIN)
            return;
        if (r == 0 || (r > 0 && take_message(c)))
            continue;
        clerk_gone(c, r == -EPIPE ? "has ended" : "talks nonsense");
    }
}

/* ---- begin and end ----------------------------------------------------------------------------
 */

void clerk_connect(struct clerk *c, uv_loop_t *loop, const char *conninfo)
{
    struct outgoing *o = outgoing_new(WIRE_CONNECT, 0);

    assert(!c->loop);
    c->loop = loop;
    int r = uv_poll_init(loop, &c->poll, c->sock);
    assert(r == 0);
    r = uv_async_init(loop, &c->wake, on_wake);
    assert(r == 0);
    c->poll.data = c->wake.data = c;
    c->handles = 2;
    wire_add_text(&o->message, conninfo);
    enqueue(c, o);
}

static void clerk_free(struct clerk *c)
{
    while (c->out) {
        struct outgoing *o = c->out;

        c->out = o->next;
        outgoing_free(o);
    }
    wire_in_done(&c->in);
    free(c);
}

static void on_closed(uv_handle_t *handle)
{
    struct clerk *c = handle->data;

    if (--c->handles == 0)
        clerk_free(c);
}

void clerk_dismiss(struct clerk *c)
{
    c->dismissed = true;
    if (c->loop) {
        uv_close((uv_handle_t *)&c->poll, on_closed);
        uv_close((uv_handle_t *)&c->wake, on_closed);
    }
    close(c->sock);
    kill(c->pid, SIGKILL);
    waitpid(c->pid, NULL, 0);
    if (!c->loop) {
        clerk_free(c);
        return;
    }
    fail_calls(c, "the server ends");
    on_wake(&c->wake);
}
