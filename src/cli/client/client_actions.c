/* Verbs with actions, such as `sandglass ctx ls`: the command line, and what actions share. */
#include "cli/client/api.h"
#include "cli/client/client.h"
#include "cli/client/jr.h"

#define NAMES_MAX 128

/* "ls, show or rm" */
static const char *join_names(const struct client_verb *v, char buf[NAMES_MAX])
{
    size_t n = 0;

    for (size_t i = 0; i < v->n_actions && n < NAMES_MAX; i++)
        n += (size_t)snprintf(buf + n, NAMES_MAX - n, "%s%s",
                              i == 0                 ? ""
                              : i + 1 < v->n_actions ? ", "
                                                     : " or ",
                              v->actions[i].name);
    return buf;
}

static int choose_action(struct client_actions *o, const char *name, struct sg_error *e)
{
    const struct client_verb *v = o->verb;
    char names[NAMES_MAX];

    for (size_t i = 0; i < v->n_actions; i++)
        if (strcmp(v->actions[i].name, name) == 0) {
            o->action = &v->actions[i];
            return 0;
        }
    return err_invalid(e, "'%.64s' is not %s", name, join_names(v, names));
}

int client_actions_positional(void *self, const char *arg, struct sg_error *e)
{
    struct client_actions *o = self;

    if (!o->action)
        return choose_action(o, arg, e);
    if (o->n_args == o->action->max && o->action->too_many)
        return err_invalid(e, "%s", o->action->too_many);
    if (o->n_args == o->action->max)
        return err_invalid(e, "unexpected argument '%.64s': %s takes %s", arg, o->action->name,
                           o->action->arguments);
    int r = o->verb->check_argument ? o->verb->check_argument(o, arg, e) : 0;
    if (r == 0)
        o->args[o->n_args++] = arg;
    return r;
}

int client_actions_check(const struct client_actions *o, struct sg_error *e)
{
    const struct cli_syntax *s = o->verb->syntax;
    char names[NAMES_MAX];

    if (!o->action)
        return err_invalid(e, "no action given: name %s", join_names(o->verb, names));
    if (o->n_args < o->action->min)
        return err_invalid(e, "%s takes %s", o->action->name, o->action->arguments);
    unsigned bit = 1u << (o->action - o->verb->actions);
    for (size_t i = 0; i < s->n_options; i++)
        if (o->given >> i & 1 && s->options[i].actions && !(s->options[i].actions & bit))
            return err_invalid(e, "--%s is not an option of %s", s->options[i].name,
                               o->action->name);
    return 0;
}

int client_actions_fn(struct client *c, void *options, struct sg_error *e)
{
    const struct client_actions *o = options;

    return o->action->fn(c, options, e);
}

bool client_given(const struct client_actions *o, const char *option)
{
    const struct cli_syntax *s = o->verb->syntax;

    for (size_t i = 0; i < s->n_options; i++)
        if (strcmp(s->options[i].name, option) == 0)
            return o->given >> i & 1;
    return false;
}

int client_delete_each(struct client *c, const struct client_actions *o, const char *below,
                       const char *noun, int (*check)(const char *name, struct sg_error *e),
                       struct sg_error *e)
{
    AUTO(jr_free_p) json_t *all = json_array();
    int status = 0;

    for (size_t i = 0; i < o->n_args; i++) {
        const char *name = o->args[i];
        json_t *row = NULL;
        int r = check ? check(name, e) : 0;

        if (r == 0)
            r = api_call(c, "DELETE", NULL, noun ? &row : NULL, e, "%s%s", below, name);
        if (r < 0) {
            if (noun && !strstr(e->message, name))
                err_wrap(e, r, "%s %s", noun, name);
            int failed = client_fail(e);
            status = status ? status : failed;
            continue;
        }
        json_array_append_new(all, noun ? row : json_string(name));
        if (!o->quiet && !o->json)
            puts(name);
    }
    int r = o->json ? jr_print(all, e) : 0;
    return r < 0 ? r : status;
}
