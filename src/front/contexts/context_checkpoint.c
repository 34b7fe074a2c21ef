/* Finds the checkpoint that a client means. A message is searched for along the line of checkpoints
 * that the sandbox has come from, newest first. Other lines, which were left by a rewind, may have
 * a checkpoint of the same message; it counts only if this line has none. */
#include <string.h>

#include "front/contexts/impl.h"

#define DEPTH_MAX 4096 /* of a line: bounded, since lines are read from notes */

/* Returns c if it is the sandbox's own. A sandbox that was branched has come from a checkpoint of
 * another sandbox, and cannot be rewound to that. */
static struct checkpoint *own(const struct sandbox *b, struct checkpoint *c)
{
    return c && strcmp(c->sandbox_id, b->id) == 0 ? c : NULL;
}

static struct checkpoint *last_of(struct sandbox *b)
{
    return own(b, checkpoint_find(b->front, b->spec.tenant, sandbox_came_from(b)));
}

static struct checkpoint *before(struct sandbox *b, const struct checkpoint *c)
{
    return c->parent[0] ? own(b, checkpoint_find(b->front, b->spec.tenant, c->parent)) : NULL;
}

struct checkpoint *checkpoint_last(struct sandbox *b)
{
    struct checkpoint *c = last_of(b);

    for (size_t i = 0; c && !c->label[0] && i < DEPTH_MAX; i++)
        c = before(b, c);
    return c;
}

static struct checkpoint *of_message(struct sandbox *b, const char *message)
{
    struct checkpoint *c = last_of(b);

    for (size_t i = 0; c && i < DEPTH_MAX; i++) {
        if (strcmp(c->label, message) == 0)
            return c;
        c = before(b, c);
    }
    return checkpoint_labelled(b->front, b->id, message);
}

static struct checkpoint *of_name(struct sandbox *b, const char *name)
{
    struct checkpoint *c = own(b, checkpoint_find(b->front, b->spec.tenant, name));

    return c && c->kind == CHECKPOINT_LABEL ? c : NULL;
}

int context_checkpoint(struct sandbox *b, const char *message, const char *checkpoint,
                       struct checkpoint **ret, struct sg_error *e)
{
    const char *what = message ? "message" : "id", *text = message ? message : checkpoint;
    struct checkpoint *c = message ? of_message(b, message) : of_name(b, checkpoint);

    if (c) {
        *ret = c;
        return 0;
    }
    if (checkpoint_was_thinned(b->front, b->id, text))
        return err_set(
            e, SG_ERR_GONE, -ESTALE,
            "the checkpoint of %s '%.64s' was thinned out: `checkpoints` lists those that are left",
            what, text);
    return err_set(e, SG_ERR_NOT_FOUND, -ENOMSG, "there is no checkpoint of %s '%.64s'", what,
                   text);
}
