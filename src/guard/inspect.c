#include "guard/inspect.h"

#include <netinet/tcp.h>
#include <sys/socket.h>

#include "guard/ca.h"
#include "lib/uv/handle.h"
#include "guard/inspect_impl.h"
#include "lib/http/http.h"

/* Steps in one slice of work, each of one piece or record at most. Tenants take turns
 * (lib/http/work.h), and flows that are not inspected never wait for inspected ones. */
#define STEPS_MAX 4

/* ---- the end of an inspection ---------------------------------------------------------------- */

void inspect_record(struct inspect *i, bool allowed, const char *rule, const char *detail)
{
    RECORD(i->sandbox, .kind = "request", .protocol = "http", .allowed = allowed, .rule = rule,
           .name = i->name, .detail = detail, .ms = uv_now(i->guard->loop) - i->request_ms);
}

void inspect_finish(struct inspect *i)
{
    side_flush(&i->server);
    side_shut(&i->server, true);
    watch_drop(&i->server_watch);
    side_done(&i->server);
    i->state = INSPECT_LINGER;
}

void inspect_abort(struct inspect *i, const char *why)
{
    if (i->down.state != DOWNLOAD_NONE)
        inspect_record(i, true, i->rules.label, why);
    i->error = why;
    i->abrupt = true;
    watch_drop(&i->server_watch);
    side_cut(&i->server);
    i->state = INSPECT_LINGER;
}

void inspect_refuse(struct inspect *i, int status, const char *text)
{
    bool ours = status < 500; /* the guard has decided; else the server is at fault */

    if (i->down.begun) {
        inspect_abort(i, "refused in the middle of an answer");
        return;
    }
    inspect_record(i, !ours, ours ? text : i->rules.label, ours ? NULL : text);
    strbuf_addf(&i->client.out,
                "HTTP/1.1 %d %s\r\nContent-Type: text/plain\r\nContent-Length: %zu\r\n"
                "Connection: close\r\n\r\n",
                status, http_status_text(status), strlen("sandglass: \n") + strlen(text));
    if (!i->to_head)
        strbuf_addf(&i->client.out, "sandglass: %s\n", text);
    watch_drop(&i->server_watch);
    side_cut(&i->server);
    i->state = INSPECT_LINGER;
}

/* Closes everything, frees i and tells the owner. */
static void end(struct inspect *i)
{
    struct inspect_done d = {i->server.sent, i->server.received, i->error};
    void (*done)(void *arg, const struct inspect_done *d) = i->done;
    void *arg = i->arg;

    if (i->state == INSPECT_OPEN && i->down.state != DOWNLOAD_NONE)
        inspect_record(i, true, i->rules.label, "cut off");
    watch_drop(&i->sandbox_watch);
    watch_drop(&i->server_watch);
    alarm_drop(&i->timer);
    work_drop(&i->work);
    side_done(&i->client);
    side_done(&i->server);
    inspect_upload_done(i);
    inspect_download_done(i);
    cleaner_done(&i->up.cleaner);
    rules_done(&i->rules);
    policy_unref(i->policy);
    sandbox_unref(i->sandbox);
    free(i);
    done(arg, &d);
}

void inspect_reset(struct inspect *i)
{
    side_cut(&i->client);
    side_cut(&i->server);
    i->over = true;
    if (!i->busy)
        end(i);
}

/* ---- deadlines ------------------------------------------------------------------------------- */

/* Whether only a few bytes are held back, which look like the beginning of a secret, and nothing
 * came after them. Bytes that wait here because the sandbox does not read count as having come. */
static bool holds_little(const struct inspect *i)
{
    size_t waits;

    side_bytes(&i->server, &waits);
    return i->down.scrubbed && waits == 0 && side_has_room(&i->client) &&
           scrub_holds_little(&i->down.scrub);
}

static bool waits_for_answer(const struct inspect *i)
{
    return i->state == INSPECT_OPEN && i->down.state == DOWNLOAD_HEAD &&
           i->up.state == UPLOAD_SENT && side_pending(&i->server) == 0;
}

static bool shakes_hands(const struct inspect *i)
{
    return (!i->client.ready && !i->client.broken) ||
           (i->server.fd >= 0 && !i->server.ready && !i->server.broken);
}

static uint64_t deadline(const struct inspect *i)
{
    uint64_t at = i->moved_ms + INSPECT_IDLE_MS, other = at;

    if (i->state == INSPECT_LINGER)
        return i->shut ? i->linger_ms + INSPECT_LINGER_MS : at;
    if (shakes_hands(i))
        other = i->began_ms + INSPECT_HANDSHAKE_MS;
    else if (holds_little(i))
        other = i->server_ms + INSPECT_QUIET_MS;
    else if (waits_for_answer(i))
        other = i->server_ms + i->first_byte_ms;
    return other < at ? other : at;
}

static void on_deadline(struct inspect *i)
{
    uint64_t now = uv_now(i->guard->loop);
    char text[INSPECT_WHY];

    if (now < deadline(i))
        return;
    if (i->state == INSPECT_LINGER || now >= i->moved_ms + INSPECT_IDLE_MS) {
        i->over = true;
        if (i->state != INSPECT_LINGER)
            i->error = "idle";
    } else if (!i->client.ready) {
        i->error = "no TLS handshake from the sandbox in time";
        i->over = true;
    } else if (shakes_hands(i)) {
        i->server.broken = true;
        snprintf(i->server.why, sizeof(i->server.why), "no TLS handshake in time");
    } else if (holds_little(i)) {
        inspect_download_flush(i);
    } else {
        snprintf(text, sizeof(text), "%s: no answer in time", i->name);
        inspect_refuse(i, 504, text);
    }
}

/* ---- the loop -------------------------------------------------------------------------------- */

static bool linger_step(struct inspect *i)
{
    size_t len;

    side_bytes(&i->client, &len);
    if (len > 0) {
        side_take(&i->client, len);
        return true;
    }
    if (!i->shut && side_pending(&i->client) == 0) {
        i->shut = true;
        i->linger_ms = uv_now(i->guard->loop);
        /* In plain HTTP only a reset can tell the sandbox that a body which ends with the
         * connection is not whole. */
        if (i->abrupt && !i->tls && i->down.begun && i->down.written == FRAMING_CLOSE)
            side_cut(&i->client);
        else
            side_shut(&i->client, !i->abrupt);
        return true;
    }
    if (i->shut && i->client.eof)
        i->over = true;
    return false;
}

static bool step(struct inspect *i)
{
    bool moved;

    switch (i->state) {
    case INSPECT_OPEN:
        moved = inspect_response_step(i);
        return (i->state == INSPECT_OPEN && inspect_request_step(i)) || moved;
    case INSPECT_TUNNEL:
        return inspect_tunnel_step(i);
    case INSPECT_LINGER:
        return linger_step(i);
    }
    return false;
}

static bool move(struct inspect *i)
{
    bool moved = side_handshake(&i->client);

    moved |= side_handshake(&i->server);
    moved |= side_fill(&i->client);
    moved |= side_fill(&i->server);
    moved |= step(i);
    moved |= side_flush(&i->client);
    moved |= side_flush(&i->server);
    return moved;
}

/* The sandbox's side is broken: ends the connection. The owner reads the text of the error at
 * once. */
static void sandbox_broke(struct inspect *i)
{
    static char text[256]; /* used by the loop's thread only */

    if (!i->client.ready && !i->error) {
        snprintf(text, sizeof(text), "TLS with the sandbox: %s", i->client.why);
        i->error = text;
    }
    i->over = true;
}

static void count_bytes(struct inspect *i)
{
    uint64_t up = i->server.sent - i->told_up, down = i->server.received - i->told_down;

    i->told_up += up;
    i->told_down += down;
    if (up + down > 0)
        i->server_ms = uv_now(i->guard->loop);
    if (up + down > 0 && i->count)
        i->count(i->arg, up, down); /* count may reset i */
}

static void on_timer(uv_timer_t *t);
static void on_ready(uv_poll_t *w, int status, int events);

static void watch_side(const struct side *s, uv_poll_t *w, int *events)
{
    size_t waits = s->in.len - s->in_at;
    bool alive = s->fd >= 0 && !s->broken;
    int wanted = 0;

    if (!w)
        return;
    if (alive && (s->want_write || (s->ready && side_pending(s) > 0)))
        wanted |= UV_WRITABLE;
    if (alive && (s->ready ? !s->eof && waits < SIDE_IN : !s->want_write))
        wanted |= UV_READABLE;
    if (wanted != *events)
        watch_for(w, wanted, on_ready);
    *events = wanted;
}

static void post(struct inspect *i)
{
    work_post(i->guard->works, &i->work, work_party_of(i->sandbox->tenant));
}

/* Sets what the loop waits for. again: there is more to do now. */
static void wait_for_more(struct inspect *i, bool again)
{
    uint64_t now = uv_now(i->guard->loop), at = deadline(i);
    uint64_t ns = at <= now ? 0 : (at - now) * 1000000;

    watch_side(&i->client, i->sandbox_watch, &i->sandbox_events);
    watch_side(&i->server, i->server_watch, &i->server_events);
    alarm_set(i->timer, ns, on_timer);
    if (again)
        post(i);
    if (i->up.state == UPLOAD_NONE && i->down.state == DOWNLOAD_NONE) {
        side_rest(&i->client);
        side_rest(&i->server);
    }
}

static void turn(struct inspect *i)
{
    uint64_t before = i->client.received + i->client.sent + i->server.received + i->server.sent;
    bool moved = true;

    i->busy = true;
    if (!i->over)
        on_deadline(i);
    for (unsigned n = 0; n < STEPS_MAX && moved && !i->over; n++) {
        moved = move(i);
        count_bytes(i);
        if (i->client.broken)
            sandbox_broke(i);
    }
    if (before != i->client.received + i->client.sent + i->server.received + i->server.sent)
        i->moved_ms = uv_now(i->guard->loop);
    i->busy = false;
    if (i->over)
        end(i);
    else
        wait_for_more(i, moved);
}

static void run_slice(struct work *w)
{
    turn(CONTAINER_OF(w, struct inspect, work));
}

static void on_timer(uv_timer_t *t)
{
    post(t->data);
}

static void on_ready(uv_poll_t *w, int status, int events)
{
    (void)status, (void)events; /* reading and writing will tell what happened */
    post(w->data);
}

/* ---- the beginning of an inspection ---------------------------------------------------------- */

static int start_tls(struct inspect *i)
{
    struct guard *g = i->guard;
    struct sg_error e;
    SSL *client, *server;

    if (!policy_inspects(i->policy, i->name)) {
        i->error = "no rule for the name: no certificate";
        return -EPERM;
    }
    i->error = "no certificate could be made";
    if (!g->ca && ca_new(g, g->dir, &g->ca, &e) < 0)
        return -EIO;
    client = ca_sandbox_side(g->ca, i->sandbox->id, i->name, &e);
    server = client ? ca_server_side(g->ca, i->name, &e) : NULL;
    if (!server) {
        SSL_free(client);
        return -EIO;
    }
    i->error = NULL;
    side_start_tls(&i->client, client);
    side_start_tls(&i->server, server);
    return 0;
}

struct inspect *inspect_new(const struct inspect_order *o)
{
    struct guard *g = o->sandbox->guard;
    int on = 1;
    struct inspect *i =
        NEW(struct inspect, .guard = g, .sandbox = sandbox_ref(o->sandbox),
            .policy = policy_ref(o->policy), .port = o->port, .tls = o->tls, .done = o->done,
            .count = o->count, .arg = o->arg, .began_ms = uv_now(g->loop),
            .moved_ms = uv_now(g->loop), .first_byte_ms = INSPECT_FIRST_BYTE_MS);

    snprintf(i->name, sizeof(i->name), "%s", o->name);
    rules_init(&i->rules, i->sandbox, i->policy, i->name);
    side_init(&i->client, o->sandbox_fd, o->first, o->first_len);
    side_init(&i->server, o->server_fd, NULL, 0);
    setsockopt(o->sandbox_fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    setsockopt(o->server_fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    i->over = i->tls && start_tls(i) < 0;
    i->sandbox_watch = watch_new(g->loop, o->sandbox_fd, i);
    i->server_watch = watch_new(g->loop, o->server_fd, i);
    i->timer = alarm_new(g->loop, i);
    i->work.run = run_slice;
    if (!g->works)
        g->works = works_new(g->loop, WORK_TURN_NS);
    post(i); /* no callback comes before inspect_new returns */
    return i;
}
