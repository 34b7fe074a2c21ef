#include "warden/sandboxes/snapshot_copy.h"

#include "warden/processes/files_worker.h"
#include "warden/sandboxes/snapshot.h"
#include "warden/server.h"

#define WORKERS_MAX 16 /* while so many files workers run, whatever they do, no copy begins */

struct copying {
    struct server *server;
    struct ticket ticket;
};

/* A copy that nobody waits for any more is not kept: the front that wanted it has died. */
static void on_copied(void *arg, struct snapshot *l, uint64_t bytes, const struct sg_error *e)
{
    AUTO(free_p) struct copying *c = arg;
    struct order_answer a = {.stats.disk_bytes = bytes};

    if (l && !ticket_valid(c->server, &c->ticket))
        snapshot_forget(l);
    if (l)
        front_answer(c->server, &c->ticket, &a, -1);
    else
        front_answer_error(c->server, &c->ticket, e->code, e);
    snapshot_release(l);
}

int snapshot_copy_begin(struct server *s, struct snapshot *of, const char *name, uint64_t most,
                        const struct ticket *t, struct sg_error *e)
{
    struct save_order o = {.name = name, .durable = true, .copy_of = of, .most = most};
    struct copying *c;

    if (snapshot_is_world(of))
        return err_set(e, SG_ERR_INVALID, -EALREADY, "a world needs no copy");
    if (s->files.n - s->files.builders >= WORKERS_MAX)
        return err_set(e, SG_ERR_LIMIT, -EAGAIN, "too many files are worked on: try again");
    c = NEW(struct copying, .server = s, .ticket = *t);
    if (snapshot_save(s, &o, on_copied, c, e))
        return 0;
    free(c);
    return e->code;
}
