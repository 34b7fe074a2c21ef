#include "cli/client/repl_trail.h"

#include "lib/command/ui.h"
#include "cli/client/api.h"
#include "cli/client/carry.h"
#include "cli/client/jr.h"
#include "cli/client/payload.h"
#include "cli/client/url.h"

#define WHY_MAX  800
#define NOT_HERE "the server takes no checkpoints of this sandbox"

static void step_done(struct repl_step *step)
{
    free(step->checkpoint);
    free(step->why);
    free(step->line);
    *step = (struct repl_step){0};
}

void repl_trail_init(struct repl_trail *t, struct client *client, const char *never)
{
    *t = (struct repl_trail){.client = client, .never = never};
}

void repl_trail_cut(struct repl_trail *t, size_t n)
{
    for (; n > 0 && t->n > 0; n--)
        step_done(&t->steps[--t->n]);
}

void repl_trail_renew(struct repl_trail *t)
{
    repl_trail_cut(t, t->n);
    free(t->off);
    t->off = NULL;
    t->told = false;
}

void repl_trail_done(struct repl_trail *t)
{
    repl_trail_renew(t);
}

/* ---- calls ----------------------------------------------------------------------------------- */

static void forget_checkpoint(struct repl_trail *t, const char *sandbox, const char *checkpoint)
{
    struct sg_error e;

    api_call(t->client, "DELETE", NULL, NULL, &e, "/sandboxes/%s/checkpoints/%s", sandbox,
             checkpoint);
}

/* Takes a checkpoint. Sets exactly one of *ret, its id, and *ret_why, the reason why there is
 * none. */
static void take(struct repl_trail *t, const char *sandbox, const char *context, uint64_t number,
                 char **ret, char **ret_why, char **ret_fresh)
{
    AUTO(jr_free_p) json_t *answer = NULL, *refusal = NULL;
    AUTO(strbuf_done) struct strbuf body = {0}, why = {0};
    struct sg_error e;
    char label[64];

    snprintf(label, sizeof(label), "cell %llu", (unsigned long long)number);
    payload_texts(&body, "label", label, NULL);
    struct api_request q = {.method = "POST", .body = &body, .refusal = &refusal};
    int r = api_ask(t->client, &q, &answer, &e, "/sandboxes/%s/checkpoints", sandbox);
    const char *id = jr_text(json_object_get(answer, "checkpoint"), "checkpointId");
    if (r == 0 && !url_is_plain_name(id))
        r = err_set(&e, SG_ERR_INTERNAL, -EPROTO, "the server's answer has no id of a checkpoint");
    if (r < 0) {
        strbuf_init(&why, WHY_MAX);
        strbuf_addstr(&why, r == -ENOENT ? NOT_HERE : e.message);
        carry_add_obstacle(&why, refusal);
        *ret_why = strbuf_detach(&why, NULL);
        /* This server has no checkpoints at all: do not ask again. */
        if ((r == -ENOENT || r == -ENOSYS) && !t->off)
            t->off = xstrdup(*ret_why);
        return;
    }
    const json_t *kernel = carry_find(json_object_get(answer, "kernels"), context);
    if (kernel && !carry_is_carried(kernel)) {
        const char *reason = jr_text(kernel, "reason");

        *ret_fresh = xstrdup(*reason ? reason : "kernels of this language cannot be copied");
        *ret_why = xstrdup(*ret_fresh);
        forget_checkpoint(t, sandbox, id);
        return;
    }
    *ret = xstrdup(id);
}

int repl_trail_rewind(struct repl_trail *t, const char *sandbox, const struct repl_step *step,
                      json_t **ret, struct sg_error *e)
{
    AUTO(strbuf_done) struct strbuf body = {0};
    AUTO(jr_free_p) json_t *answer = NULL;

    payload_texts(&body, "checkpointId", step->checkpoint, NULL);
    int r = api_call(t->client, "POST", &body, &answer, e, "/sandboxes/%s/rewind", sandbox);
    if (r == 0)
        *ret = json_incref(json_object_get(answer, "kernels"));
    return r;
}

int repl_trail_list(struct repl_trail *t, const char *sandbox, json_t **ret, struct sg_error *e)
{
    AUTO(jr_free_p) json_t *answer = NULL;
    int r = api_get(t->client, &answer, e, "/sandboxes/%s/checkpoints", sandbox);

    if (r == 0)
        *ret = json_incref(json_object_get(answer, "checkpoints"));
    return r;
}

/* ---- steps ----------------------------------------------------------------------------------- */

void repl_trail_add(struct repl_trail *t, const char *sandbox, const char *context,
                    struct repl_step *step, char **ret_fresh)
{
    uint64_t number = step->counts[step->context] + 1;

    *ret_fresh = NULL;
    if ((t->never || t->off) && !step->why)
        step->why = xstrdup(t->never ? t->never : t->off);
    if (!step->why) {
        take(t, sandbox, context, number, &step->checkpoint, &step->why, ret_fresh);
        if (step->why && !*ret_fresh && !t->told) {
            t->told = true;
            ui_note("this cell cannot be undone: %s", step->why);
        }
    }
    if (t->n == REPL_STEPS_MAX) {
        step_done(&t->steps[0]);
        memmove(&t->steps[0], &t->steps[1], (REPL_STEPS_MAX - 1) * sizeof(t->steps[0]));
        t->n--;
    }
    t->steps[t->n++] = *step;
    *step = (struct repl_step){0};
}

int repl_trail_find(const struct repl_trail *t, uint64_t n, const struct repl_step **ret,
                    struct sg_error *e)
{
    if (t->n == 0)
        return err_set(e, SG_ERR_INVALID, -ENOENT, "%s",
                       t->never ? t->never : "no cell has run yet: there is nothing to undo");
    if (n > t->n)
        return err_set(e, SG_ERR_INVALID, -ERANGE, "there %s %zu cell%s to undo: ':log' lists %s",
                       t->n == 1 ? "is" : "are", t->n, t->n == 1 ? "" : "s",
                       t->n == 1 ? "it" : "them");
    const struct repl_step *step = &t->steps[t->n - n];
    if (!step->checkpoint)
        return err_set(e, SG_ERR_UNSUPPORTED, -EOPNOTSUPP,
                       "there is no checkpoint before cell %llu: %.320s",
                       (unsigned long long)(step->counts[step->context] + 1), step->why);
    *ret = step;
    return 0;
}
