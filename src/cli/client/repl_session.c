#include "cli/client/repl_session.h"

#include "lib/command/ui.h"
#include "cli/client/jr.h"
#include "cli/client/repl_command.h"
#include "cli/client/url.h"

/* ---- contexts -------------------------------------------------------------------------------- */

static int add_context(struct repl_session *s, char *id, char *language, bool made,
                       struct sg_error *e)
{
    if (s->n_contexts == REPL_CONTEXTS_MAX) {
        free(id);
        free(language);
        return err_set(e, SG_ERR_LIMIT, -E2BIG, "more than %d contexts in one session",
                       REPL_CONTEXTS_MAX);
    }
    s->contexts[s->n_contexts] =
        (struct repl_context){.id = id, .language = language, .made = made};
    s->current = s->n_contexts++;
    return 0;
}

static int make_context(struct repl_session *s, const char *language, struct sg_error *e)
{
    char *id = NULL, *name = NULL;
    int r = repl_context_create(&s->life.sandbox, language, &id, &name, e);

    return r < 0 ? r : add_context(s, id, name, true, e);
}

void repl_session_keep(struct repl_session *s, size_t n, size_t current)
{
    while (s->n_contexts > n) {
        struct repl_context *last = &s->contexts[--s->n_contexts];

        free(last->id);
        free(last->language);
        free(last->fresh);
    }
    s->current = current;
}

int repl_session_language(struct repl_session *s, const char *language, struct sg_error *e)
{
    for (size_t i = 0; i < s->n_contexts; i++)
        if (strcmp(s->contexts[i].language, language) == 0) {
            s->current = i;
            return 0;
        }
    return make_context(s, language, e);
}

int repl_session_use(struct repl_session *s, const char *id, struct sg_error *e)
{
    AUTO(jr_free_p) json_t *list = NULL;
    int r;

    for (size_t i = 0; i < s->n_contexts; i++)
        if (strcmp(s->contexts[i].id, id) == 0) {
            s->current = i;
            return 0;
        }
    r = repl_context_list(&s->life.sandbox, &list, e);
    for (size_t i = 0; r == 0 && i < json_array_size(list); i++) {
        const json_t *one = json_array_get(list, i);
        const char *language = jr_text(one, "language");

        if (strcmp(jr_text(one, "id"), id) == 0 && url_is_plain_name(id) &&
            url_is_plain_name(language))
            return add_context(s, xstrdup(id), xstrdup(language), false, e);
    }
    return r < 0 ? r
                 : err_set(e, SG_ERR_NOT_FOUND, -ENOENT,
                           "there is no context '%.64s': ':contexts' lists them", id);
}

/* Removes the contexts that this session made, in a sandbox that lives on without the session. */
static void remove_contexts(struct repl_session *s)
{
    struct sg_error e;

    if (!s->life.id || s->life.own || s->life.gone || s->life.options->keep)
        return;
    for (size_t i = 0; i < s->n_contexts; i++)
        if (s->contexts[i].made)
            repl_context_call(&s->life.sandbox, "DELETE", s->contexts[i].id, "", &e);
}

/* ---- from begin to end ----------------------------------------------------------------------- */

/* Why this session makes no checkpoints, or NULL. */
static const char *no_checkpoints(const struct client *c, const struct repl_options *o)
{
    if (o->no_checkpoints)
        return "this prompt was started with --no-checkpoints";
    return c->settings.debug ? "with E2B_DEBUG there is no server to ask for checkpoints" : NULL;
}

int repl_session_open(struct repl_session *s, struct client *c, const struct repl_options *o,
                      bool terminal, struct sg_error *e)
{
    bool colour = terminal && !o->no_colour && ui_has_colour(STDOUT_FILENO);

    *s = (struct repl_session){0};
    int r = repl_watch_open(&s->watch, e);
    strbuf_init(&s->cells, REPL_SESSION_MAX);
    repl_show_init(&s->show, terminal, colour, o->json);
    repl_life_init(&s->life, c, &s->watch, o);
    repl_trail_init(&s->trail, c, no_checkpoints(c, o));
    s->terminal = terminal;
    if (r == 0)
        r = repl_life_begin(&s->life, false, e);
    if (r < 0)
        return r;
    return o->context ? repl_session_use(s, o->context, e) : make_context(s, o->language, e);
}

void repl_session_close(struct repl_session *s)
{
    remove_contexts(s);
    repl_session_keep(s, 0, 0);
    repl_trail_done(&s->trail);
    repl_life_done(&s->life);
    strbuf_done(&s->cells);
    repl_watch_close(&s->watch);
}

int repl_session_renew(struct repl_session *s, struct sg_error *e)
{
    AUTO(free_p)
    char *language =
        xstrdup(s->n_contexts ? s->contexts[s->current].language : s->life.options->language);

    remove_contexts(s);
    int r = repl_life_begin(&s->life, true, e);
    if (r < 0)
        return r;
    repl_session_keep(s, 0, 0);
    repl_trail_renew(&s->trail);
    return make_context(s, language, e);
}

/* ---- cells ----------------------------------------------------------------------------------- */

static int take_event(void *arg, const struct repl_event *event, struct sg_error *e)
{
    struct repl_session *s = arg;

    return repl_show_event(&s->show, event, e);
}

/* The terminal has shown "^C", so the cursor is not at the beginning of a line. */
static void interrupted(void *arg)
{
    struct repl_session *s = arg;

    s->show.in_line = true;
}

static void tick(void *arg)
{
    struct repl_session *s = arg;

    repl_life_touch(&s->life);
}

int repl_session_run(struct repl_session *s, const char *code, size_t len, struct sg_error *e)
{
    struct repl_context *context = &s->contexts[s->current];
    struct repl_cell cell = {.context = context->id,
                             .code = code,
                             .len = len,
                             .event = take_event,
                             .arg = s,
                             .interrupted = interrupted,
                             .tick = tick};

    if (s->life.gone || s->n_contexts == 0)
        return err_set(e, SG_ERR_GONE, -ENXIO, "the sandbox has ended");
    repl_life_touch(&s->life);
    if (s->terminal)
        repl_back_mark(s, code, len); /* only at a prompt can one go back */
    s->show.count = 0;                /* unknown until the server tells */
    repl_show_begin(&s->show);
    int r = repl_cell_run(&s->watch, &s->life.sandbox, &cell, e);
    if (s->show.count > 0)
        context->count = s->show.count;
    repl_show_line(&s->show);
    if (r == -ENXIO)
        s->life.gone = true;
    strbuf_add(&s->cells, code, len);
    strbuf_addstr(&s->cells, "\n\n");
    return r;
}
