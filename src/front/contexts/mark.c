/* Takes a checkpoint before a message. Several calls may come for one message, one after the other
 * or all at once, and the checkpoint must have the state before the first of them. So the calls of
 * a sandbox are handled one at a time, and no checkpoint is taken in two cases: the last message
 * that the sandbox has come from is the same; or the first call could not get one. A later
 * checkpoint would store another state under that message. */
#include <string.h>

#include "lib/json/values.h"
#include "front/contexts/impl.h"

struct marking {
    struct list link;
    struct sandbox *sandbox;
    char message[CHECKPOINT_LABEL_MAX + 1];
    uint64_t wait_ms;
    bool begun;
    context_marked done;
    void *arg;
};

/* The markings of all sandboxes, oldest first. The first of each sandbox is at work, the others
 * wait for it. */
static struct list all;

static void begin(struct marking *m);

static struct marking *first_of(const struct sandbox *b)
{
    return LIST_FIND(struct marking, m, &all, link, m->sandbox == b);
}

static void end(struct marking *m, const char *checkpoint, const char *skipped)
{
    struct context *c = m->sandbox->context;

    if (c)
        snprintf(c->unmarked, sizeof(c->unmarked), "%s", checkpoint ? "" : m->message);
    list_remove(&m->link);
    m->done(m->arg, checkpoint, skipped);
    struct marking *next = first_of(m->sandbox);
    if (next && !next->begun)
        begin(next);
    sandbox_unref(m->sandbox);
    free(m);
}

/* Ends without a checkpoint. The reason includes the remedy for the first thing in the way, since
 * the answer has no room for the whole list. Nothing in this text was chosen by code inside the
 * sandbox. */
static void end_without(struct marking *m, const struct sg_error *e, const json_t *report)
{
    const json_t *first = json_array_get(json_object_get(report, "inTheWay"), 0);
    const char *what = jr_text_or(first, "what", NULL);
    const char *remedy = jr_text_or(first, "remedy", NULL);
    struct sg_error more = *e;

    if (what && remedy)
        snprintf(more.message, sizeof(more.message), "%.80s (%.20s): %.300s", e->message, what,
                 remedy);
    end(m, NULL, more.message);
}

static void on_taken(void *arg, struct checkpoint *c, int r, const struct sg_error *e,
                     const json_t *report)
{
    if (r < 0)
        end_without(arg, e, report);
    else
        end(arg, c->name, NULL);
}

static void on_ready(void *arg, struct sandbox *b, int r, const struct sg_error *e)
{
    struct marking *m = arg;
    const struct checkpoint *last = r < 0 ? NULL : checkpoint_last(b);
    bool begun = b->context && strcmp(b->context->unmarked, m->message) == 0;
    struct checkpoint_ask ask = {
        .kind = CHECKPOINT_LABEL, .label = m->message, .wait_ms = m->wait_ms};

    if (r < 0)
        end(m, NULL, e->message);
    else if (last && strcmp(last->label, m->message) == 0)
        end(m, last->name, NULL);
    else if (begun)
        end(m, NULL, "the message has begun without a checkpoint");
    else
        sandbox_checkpoint(b, &ask, on_taken, m);
}

static void begin(struct marking *m)
{
    m->begun = true;
    context_when_ready(m->sandbox, on_ready, m);
}

void context_mark(struct sandbox *b, const char *message, uint64_t wait_ms, context_marked done,
                  void *arg)
{
    struct marking *m =
        NEW(struct marking, .sandbox = sandbox_ref(b),
            .wait_ms = wait_ms < CHECKPOINT_WAIT_MAX_MS ? wait_ms : CHECKPOINT_WAIT_MAX_MS,
            .done = done, .arg = arg);

    snprintf(m->message, sizeof(m->message), "%s", message);
    bool alone = !first_of(b);
    list_append(&all, &m->link);
    if (alone)
        begin(m);
}
