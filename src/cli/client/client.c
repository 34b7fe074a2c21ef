#include "cli/client/client.h"

#include <signal.h>

#include "lib/text/parse.h"
#include "lib/command/exit_status.h"
#include "lib/command/ui.h"
#include "cli/client/api.h"
#include "cli/client/interrupt.h"
#include "cli/client/jr.h"
#include "cli/client/url.h"

#define SECONDS_MAX (366ull * 24 * 3600)
#define USER_MAX    64
#define NAMES_MAX   128

const struct client_verb *const client_verbs[] = {
    &ps_verb,    &create_verb, &exec_verb,   &repl_verb,     &cp_verb,   &logs_verb,   &kill_verb,
    &pause_verb, &resume_verb, &fork_verb,   &top_verb,      &ctx_verb,  &usage_verb,  &events_verb,
    &mcp_verb,   &secret_verb, &agents_verb, &template_verb, &diff_verb, &volume_verb, &link_verb,
};
const size_t client_n_verbs = ARRAY_SIZE(client_verbs);

/* ---- options of several verbs ---------------------------------------------------------------- */

int client_check_id(const char *id, struct sg_error *e)
{
    if (url_is_plain_name(id))
        return 0;
    return err_invalid(e, "'%.64s' is not the id of a sandbox: 'sandglass ps' lists them", id);
}

int client_check_pair(const char *what, const char *pair, struct sg_error *e)
{
    if (strchr(pair, '=') && pair[0] != '=')
        return 0;
    return err_invalid(e, "%s '%.64s' is not KEY=VALUE", what, pair);
}

int client_user(void *to, const struct cli_option *o, const char *value, struct sg_error *e)
{
    size_t len = strlen(value);

    if (len == 0 || len > USER_MAX || strpbrk(value, ":/ \t\r\n"))
        return err_invalid(e, "--user '%.64s' is not the name of a user, such as 'user' or 'root'",
                           value);
    return cli_text(to, o, value, e);
}

int client_id(void *to, const struct cli_option *o, const char *value, struct sg_error *e)
{
    cli_text(to, o, value, e);
    return client_check_id(value, e);
}

int client_seconds(void *to, const struct cli_option *o, const char *value, struct sg_error *e)
{
    uint64_t ms;
    char name[32];

    snprintf(name, sizeof(name), "--%s", o->name);
    int r = parse_duration_ms(name, value, &ms, e);
    if (r < 0)
        return r;
    uint64_t seconds = ms / 1000 + (ms % 1000 != 0);
    if (seconds < 1 || seconds > SECONDS_MAX)
        return err_set(e, SG_ERR_INVALID, -ERANGE, "%s '%.64s' is not between 1s and 366d", name,
                       value);
    *(uint64_t *)to = seconds;
    return 0;
}

int client_wait(void *to, const struct cli_option *o UNUSED, const char *value, struct sg_error *e)
{
    uint64_t ms;
    int r = parse_duration_ms("--wait", value, &ms, e);

    if (r < 0)
        return r;
    if (ms > CLIENT_WAIT_MAX_MS)
        return err_set(e, SG_ERR_INVALID, -ERANGE, "--wait '%.64s' is more than 10m", value);
    *(uint64_t *)to = ms;
    return 0;
}

/* ---- verbs with actions, such as `sandglass ctx ls` ------------------------------------------ */

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

/* ---- a verb from begin to end ---------------------------------------------------------------- */

static void print_help(const struct client_verb *verb)
{
    const char *line = verb->usage;

    for (const char *lead = "Usage: "; *line; lead = "       ") {
        size_t len = strcspn(line, "\n");

        printf("%ssandglass %s %.*s\n", lead, verb->name, (int)len, line);
        line += len + (line[len] == '\n');
    }
    printf("\n%s\n\n", verb->about);
    cli_print_options(stdout, verb->syntax);
}

int client_parse(const struct client_verb *verb, int argc, char **argv, void *options,
                 struct sg_error *e)
{
    const struct client_common *common = options;
    char **rest = NULL;

    if (verb->actions)
        ((struct client_actions *)options)->verb = verb;
    int r = verb->command ? cli_parse_command(verb->syntax, argc, argv, options, &rest, e)
                          : cli_parse(verb->syntax, argc, argv, options, &rest, e);

    /* After "--" everything is an argument, even if it looks like an option. */
    for (; r == 0 && !verb->command && rest && *rest; rest++)
        r = verb->syntax->positional(options, *rest, e);
    if (r == 0 && !common->help && verb->actions)
        r = client_actions_check(options, e);
    if (r == 0 && !common->help && verb->check)
        r = verb->check(options, rest, e);
    return r;
}

static int run(const struct client_verb *verb, void *options)
{
    const struct client_common *common = options;
    struct client c = {0};
    struct sg_error e;

    if (verb->is_local && verb->is_local(options)) {
        int status = verb->fn(NULL, options, &e);
        return status < 0 ? client_fail(&e) : status;
    }
    if (settings_load(&c.settings, common->url, common->key_file, &e) < 0) {
        ui_error("%s", e.message);
        return verb->unready ? verb->unready(&e) : CLI_EXIT_USAGE;
    }
    c.easy = curl_easy_init();
    if (!c.easy)
        abort();
    int status = verb->fn(&c, options, &e);
    if (status < 0)
        status = client_fail(&e);
    curl_easy_cleanup(c.easy);
    settings_done(&c.settings);
    return status;
}

int client_main(const struct client_verb *verb, int argc, char **argv)
{
    AUTO(free_p) void *options = xcalloc(1, verb->options_size);
    const struct client_common *common = options;
    struct sg_error e;

    if (client_parse(verb, argc, argv, options, &e) < 0)
        return ui_usage(verb->name, e.message);
    if (!common->help)
        return run(verb, options);
    print_help(verb);
    return 0;
}

int client_fail(const struct sg_error *e)
{
    if (e->code == -EINTR && interrupt_signal())
        return CLI_EXIT_SIGNAL + interrupt_signal();
    if (e->code == -EPIPE)
        return CLI_EXIT_SIGNAL + SIGPIPE; /* nobody reads our output: not worth a message */
    ui_error("%s", e->message);
    if (e->code == -ETIMEDOUT)
        return CLI_EXIT_TIMEOUT;
    return e->code == -EHOSTUNREACH ? CLI_EXIT_SETUP : CLIENT_EXIT_REFUSED;
}
