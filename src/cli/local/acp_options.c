#include "cli/local/acp_options.h"

#include <limits.h>
#include <string.h>

#include "engine/sandbox.h"

/* The engine has one template, and knows it by both names, as a server does. */
static int apply_template(void *self UNUSED, const struct cli_option *option UNUSED,
                          const char *value, struct sg_error *e)
{
    if (strcmp(value, "base") == 0 || strcmp(value, "code-interpreter-v1") == 0)
        return 0;
    return err_invalid(
        e,
        "--template '%.64s' is not 'base' or 'code-interpreter-v1': other templates are "
        "a server's; see 'sandglass agents start'",
        value);
}

static int apply_source(void *self, const struct cli_option *option UNUSED, const char *value,
                        struct sg_error *e)
{
    struct acp_options *o = self;

    if (!*value)
        return err_invalid(e, "--source: the path is empty");
    if (o->source)
        return err_invalid(e, "--source is given twice: give one");
    o->source = value;
    return 0;
}

static int apply_into(void *self, const struct cli_option *option UNUSED, const char *value,
                      struct sg_error *e)
{
    struct acp_options *o = self;

    if (!*value || strlen(value) >= PATH_MAX / 2)
        return err_invalid(e, "--into '%.64s' is not a path inside the sandbox", value);
    o->into = value;
    return 0;
}

/* ---- secrets --------------------------------------------------------------------------------- */

/* The user may have put the secret's value here by mistake, so no message shows the text. */
static int bad_secret(struct sg_error *e, const char *why)
{
    return err_invalid(e,
                       "--secret: %s: use NAME[=VARIABLE]@HOST[,HOST...], such as "
                       "API_KEY@api.example.com",
                       why);
}

static int split_hosts(struct acp_secret *s, char *rest, struct sg_error *e)
{
    size_t n = 0;
    char *host;

    while ((host = strsep(&rest, ","))) {
        if (n == ACP_SECRET_HOSTS_MAX)
            return bad_secret(e, "too many hosts");
        if (!strchr(host, '.') || !network_entry_is_name(host))
            return bad_secret(e, "a host must be a name");
        s->hosts[n++] = host;
    }
    return 0;
}

static int apply_secret(void *self, const struct cli_option *option UNUSED, const char *value,
                        struct sg_error *e)
{
    struct acp_options *o = self;
    struct acp_secret *s = &o->secrets[o->n_secrets];
    char *at, *equals;

    if (o->n_secrets == ACP_SECRETS_MAX)
        return err_set(e, SG_ERR_INVALID, -E2BIG, "--secret: more than %d secrets",
                       ACP_SECRETS_MAX);
    s->text = xstrdup(value);
    o->n_secrets++;
    at = strchr(s->text, '@');
    if (!at)
        return bad_secret(e, "no host given");
    *at = '\0';
    equals = strchr(s->text, '=');
    if (equals)
        *equals = '\0';
    s->name = s->text;
    s->variable = equals ? equals + 1 : s->text;
    if (!secret_name_is_valid(s->name) || !secret_name_is_valid(s->variable))
        return bad_secret(e, "the part before '@' must be the name of a variable, never a value");
    for (size_t i = 0; i + 1 < o->n_secrets; i++)
        if (strcmp(o->secrets[i].name, s->name) == 0)
            return err_invalid(e, "--secret: '%s' is given twice", s->name);
    return split_hosts(s, at + 1, e);
}

/* ---- all together ---------------------------------------------------------------------------- */

static const struct cli_option options[] = {
    {"template", 0, "NAME", "base or code-interpreter-v1", .apply = apply_template},
    {"source", 's', "PATH", "put a directory (copied), a tar or a git bundle into the sandbox",
     .apply = apply_source},
    {"into", 0, "DIR", "where --source goes, and the directory to start in (default ~/project)",
     .apply = apply_into},
    {"serve-fs", 0, NULL, "answer the agent's file and terminal requests inside",
     CLI_FLAG(acp_options, serve_fs)},
    {"secret", 0, "NAME[=VARIABLE]@HOST[,HOST...]",
     "a variable whose value only requests to HOST get", .apply = apply_secret},
    {"timeout", 0, "TIME", "the agent's time: 90s, 30m, 1h (default), 24h", CAGE_TIMEOUT},
    {"log", 0, "FILE|-", "log what happened, as lines of JSON",
     CLI_FILLED(acp_options, log, "the name of the file")},
    CAGE_ROWS};

const struct cli_syntax acp_syntax = {options, ARRAY_SIZE(options), NULL, 0};

/* Without --network, the agent reaches the hosts of its secrets and nothing else. */
static int network_of_secrets(struct acp_options *o, struct sg_error *e)
{
    AUTO(strbuf_done) struct strbuf list = strbuf_upto(64u * 1024);

    if (o->n_secrets == 0)
        return 0;
    if (o->cage.network_given)
        return o->cage.network.mode == SG_NETWORK_BLOCK
                   ? err_invalid(e, "--secret needs a network: leave out '--network block'")
                   : 0;
    for (size_t i = 0; i < o->n_secrets; i++)
        for (const char *const *host = o->secrets[i].hosts; *host; host++)
            strbuf_addf(&list, "%s%s", list.len ? "," : "", *host);
    return network_list_parse(&o->cage.network, list.buf, e);
}

static int check_whole(struct acp_options *o, struct sg_error *e)
{
    if (!o->command || !*o->command)
        return err_invalid(e, "no agent: give its command after '--'");
    if (o->into && !o->source)
        return err_invalid(e, "--into is for what --source puts in");
    for (size_t i = 0; i < o->n_secrets; i++)
        if (env_list_has(&o->cage.env, o->secrets[i].name))
            return err_invalid(e, "'%s' is given both by --env and by --secret",
                               o->secrets[i].name);
    return network_of_secrets(o, e);
}

/* Cuts the command off before cli_parse sees it: cli_parse refuses arguments after "--" for a verb
 * that takes none. */
static int split_command(int argc, char **argv, struct acp_options *o)
{
    for (int i = 1; i < argc; i++)
        if (strcmp(argv[i], "--") == 0) {
            o->command = argv + i + 1;
            return i;
        }
    return argc;
}

int acp_options_parse(int argc, char **argv, struct acp_options *ret, struct sg_error *e)
{
    struct acp_options *o = xcalloc(1, sizeof(*o));
    char **rest;
    int r;

    o->cage.timeout_ms = ACP_DEFAULT_TIMEOUT_MS;
    r = cli_parse(&acp_syntax, split_command(argc, argv, o), argv, o, &rest, e);
    if (r == 0 && !o->cage.help)
        r = check_whole(o, e);
    if (r < 0)
        acp_options_done(o);
    else
        *ret = *o;
    free(o);
    return r;
}

void acp_options_done(struct acp_options *o)
{
    for (size_t i = 0; i < o->n_secrets; i++)
        free(o->secrets[i].text);
    cage_options_done(&o->cage);
    *o = (struct acp_options){0};
}
