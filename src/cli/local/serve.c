/* `sandglass serve`: parses the flags; src/warden does the rest. */
#include <limits.h>
#include <stdio.h>

#include "cli/local/cli.h"
#include "cli/local/delegate.h"
#include "cli/local/serve_options.h"
#include "lib/command/ui.h"
#include "warden/server.h"

#define HELP_TEXT_MAX 160
#define OTHER_OPTIONS 3

struct serve_flags {
    struct serve_call call;
    char paths[SETTING_MAX_][SETTINGS_PATH_MAX];
    bool help;
};

static bool is_path(enum setting k)
{
    const char *argument = setting_info(k)->argument;

    return argument && (strcmp(argument, "FILE") == 0 || strcmp(argument, "DIR") == 0);
}

/* A flag without a value means yes. A relative path becomes absolute, because the user meant it
 * from the directory that the command was given in. */
static int set_flag(struct serve_flags *f, enum setting k, const char *value, struct sg_error *e)
{
    char *path = f->paths[k];

    if (value && value[0] && value[0] != '/' && is_path(k)) {
        if (!getcwd(path, SETTINGS_PATH_MAX))
            return err_errno(e, "cannot find '%.64s'", value);
        size_t n = strlen(path);
        if (snprintf(path + n, SETTINGS_PATH_MAX - n, "/%s", value) >= (int)(SETTINGS_PATH_MAX - n))
            return err_set(e, SG_ERR_INVALID, -ENAMETOOLONG, "the path '%.64s' is too long", value);
        value = path;
    }
    f->call.settings.flags[k] = value ? value : "yes";
    return 0;
}

static struct cli_option options[OTHER_OPTIONS + SETTING_MAX_] = {
    {"config", 'c', "FILE", "settings of the server (default: " SERVE_CONFIG ")",
     CLI_TEXT(serve_flags, call.settings.config)},
    {"new", 0, NULL, "start afresh if the database is missing; other files are moved aside",
     CLI_FLAG(serve_flags, call.anew)},
    {"help", 'h', NULL, "show this text", CLI_FLAG(serve_flags, help)},
};

static int apply_setting(void *self, const struct cli_option *o, const char *value,
                         struct sg_error *e)
{
    return set_flag(self, (enum setting)(o - options - OTHER_OPTIONS), value, e);
}

const struct cli_syntax *serve_syntax(void)
{
    static char names[SETTING_MAX_][SETTINGS_ENV_MAX], helps[SETTING_MAX_][HELP_TEXT_MAX];
    static const struct cli_syntax syntax = {options, ARRAY_SIZE(options), NULL, 0};

    for (enum setting k = 0; k < SETTING_MAX_ && !names[k][0]; k++) {
        const struct setting_info *info = setting_info(k);
        bool show = info->argument && info->normal[0];
        setting_flag(k, names[k]);
        snprintf(helps[k], HELP_TEXT_MAX, "%s%s%s%s", info->help, show ? " (" : "",
                 show ? info->normal : "", show ? ")" : "");
        options[OTHER_OPTIONS + k] =
            (struct cli_option){names[k], 0, info->argument, helps[k], .apply = apply_setting};
    }
    return &syntax;
}

static void print_help(void)
{
    printf("Usage: sandglass serve [OPTION]...\n\n"
           "Serves sandboxes to programs written for E2B, until it gets SIGTERM.\n"
           "The first start makes an API key and prints what to export.\n\n");
    cli_print_options(stdout, serve_syntax());
    printf("\nEach setting can also be given as SANDGLASS_NAME in the environment, or as\n"
           "'name = value' in the configuration file: see sandglass.conf(5).\n");
}

static int find_program(const char *name, char path[PATH_MAX])
{
    int r = delegate_path(name, path, PATH_MAX);

    if (r < 0)
        ui_error("cannot find '%s': %s", name, strerror(-r));
    return r;
}

int cmd_serve(int argc, char **argv)
{
    struct serve_flags f = {0};
    char front[PATH_MAX], guard[PATH_MAX];
    struct sg_error e = {0};
    char **rest;
    int r;

    if (cli_parse(serve_syntax(), argc, argv, &f, &rest, &e) < 0)
        return ui_usage("serve", e.message);
    if (f.help) {
        print_help();
        return 0;
    }
    if (find_program("sandglass-front", front) < 0 || find_program("sandglass-guard", guard) < 0)
        return CLI_EXIT_SETUP;
    f.call.front_program = front;
    f.call.guard_program = guard;
    r = serve_run(&f.call, &e);
    if (r < 0)
        ui_error("%s", e.message);
    if (r < 0 && e.kind == SG_ERR_UNSUPPORTED)
        return CLI_EXIT_CANNOT;
    return r == 0 ? 0 : e.kind == SG_ERR_INVALID ? CLI_EXIT_USAGE : CLI_EXIT_SETUP;
}
