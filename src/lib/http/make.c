/* Makes things of long bodies (such as decoded messages), on threads: see http_body_make.
 *
 *   room --> body whole --> waits --> a thread: make --> the loop: done, or drop if the client
 *                                                        has gone
 *
 * Bodies come faster than threads can work on them. So each body needs room before it may come, and
 * keeps it until its job is done. All bodies share ROOM bytes, which only the last one let in may
 * exceed; the others wait in their sockets, in the order they came. Two rules keep the bodies of
 * one party from blocking another's. A party that has no body with room is let in at once. And a
 * body that comes slower than ROOM_PACE gives its room back and goes on without (HTTP_WAITING_MAX
 * bounds what such bodies take). So a body that has room is soon done. */
#include "lib/http/impl.h"

#define ROOM       (24u << 20)
#define ROOM_PACE  (256u << 10) /* bytes in ROOM_TICKS */
#define ROOM_TICKS (1000 / HTTP_TICK_MS)

/* ---- room ------------------------------------------------------------------------------------ */

static struct req *first_of(const struct list *list, uint64_t party)
{
    return LIST_FIND(struct req, r, list, in_room, r->pub.party == party);
}

static void room_take(struct req *r)
{
    struct http_server *s = r->pub.server;

    r->room = ROOM_TAKEN;
    s->room_taken += r->room_bytes;
    list_append(&s->roomed, &r->in_room);
}

static void room_let_in(struct req *r)
{
    list_remove(&r->in_room);
    room_take(r);
    conn_wake(r->conn);
}

void make_room_ask(struct req *r, size_t bytes)
{
    struct http_server *s = r->pub.server;

    if (r->room != ROOM_UNASKED)
        return;
    r->room_bytes = bytes;
    if (s->room_taken < ROOM || !first_of(&s->roomed, r->pub.party)) {
        room_take(r);
    } else {
        r->room = ROOM_AWAITED;
        list_append(&s->roomless, &r->in_room);
    }
}

void make_room_leave(struct req *r)
{
    struct http_server *s = r->pub.server;
    enum make_room had = r->room;
    struct req *next;

    r->room = ROOM_LEFT;
    list_remove(&r->in_room);
    if (had != ROOM_TAKEN)
        return;
    s->room_taken -= r->room_bytes;
    while (s->room_taken < ROOM && (next = LIST_FIRST(struct req, &s->roomless, in_room)))
        room_let_in(next);
    next = first_of(&s->roomless, r->pub.party);
    if (next && !first_of(&s->roomed, r->pub.party))
        room_let_in(next);
}

void make_room_tick(struct req *r)
{
    if (r->room != ROOM_TAKEN || ++r->room_ticks < ROOM_TICKS)
        return;
    if (r->collected.len - r->room_seen < ROOM_PACE)
        make_room_leave(r);
    r->room_seen = r->collected.len;
    r->room_ticks = 0;
}

/* ---- making ---------------------------------------------------------------------------------- */

struct make_job {
    struct http_job job;
    struct req *req; /* NULL: the client has gone */
    bool secret;
    const struct http_make *how;
    const void *schema;
    struct strbuf body;
    void *made;
};

static void job_free(struct make_job *j)
{
    if (j->secret)
        strbuf_wipe(&j->body);
    else
        strbuf_done(&j->body);
    free(j);
}

static void run(struct http_job *job)
{
    struct make_job *j = CONTAINER_OF(job, struct make_job, job);

    j->made = j->how->make(j->schema, j->body.buf, j->body.len);
}

static void done(struct http_job *job)
{
    struct make_job *j = CONTAINER_OF(job, struct make_job, job);
    struct req *r = j->req;

    if (r) {
        r->job = NULL;
        http_keep(&r->pub, 0);
        make_room_leave(r);
    }
    if (r && !http_req_over(&r->pub))
        body_tell_made(r, j->made);
    else
        j->how->drop(j->made);
    job_free(j);
}

void make_begin(struct req *r, struct strbuf *body)
{
    struct make_job *j =
        NEW(struct make_job, .job = {.run = run, .done = done}, .req = r,
            .secret = r->pub.body_secret, .how = r->make, .schema = r->make_schema, .body = *body);

    *body = (struct strbuf){0};
    r->job = j;
    http_job_begin(r->pub.server, &j->job, r->pub.party);
}

void make_forget(struct make_job *j)
{
    if (!j)
        return;
    j->req = NULL;
    if (http_job_drop(&j->job))
        job_free(j);
}
