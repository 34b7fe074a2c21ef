#include "cli/local/run_options.h"

#include "lib/base/languages.h"

#define OUTPUT_LIMIT_MAX (1024ull * 1024 * 1024)

/* ---- where the code comes from --------------------------------------------------------------- */

static const char *source_name(enum run_source source)
{
    switch (source) {
    case RUN_SOURCE_CODE:
        return "code as an argument";
    case RUN_SOURCE_FILE:
        return "-f FILE";
    case RUN_SOURCE_STDIN:
        return "'-' (standard input)";
    case RUN_SOURCE_COMMAND:
        return "a command after '--'";
    case RUN_SOURCE_NONE:
    default:
        return "nothing";
    }
}

static int set_source(struct run_options *o, enum run_source source, const char *text,
                      struct sg_error *e)
{
    if (o->source == RUN_SOURCE_CODE && source == RUN_SOURCE_CODE)
        return err_invalid(
            e,
            "unexpected argument '%.64s': code is one argument, put quotes around it; a "
            "command follows '--'",
            text);
    if (o->source != RUN_SOURCE_NONE)
        return err_invalid(e, "both %s and %s are given: give one", source_name(o->source),
                           source_name(source));
    o->source = source;
    o->source_text = text;
    return 0;
}

static int positional(void *self, const char *arg, struct sg_error *e)
{
    enum run_source source = strcmp(arg, "-") == 0 ? RUN_SOURCE_STDIN : RUN_SOURCE_CODE;

    return set_source(self, source, arg, e);
}

static int apply_file(void *self, const struct cli_option *option UNUSED, const char *value,
                      struct sg_error *e)
{
    enum run_source source = strcmp(value, "-") == 0 ? RUN_SOURCE_STDIN : RUN_SOURCE_FILE;

    if (!*value)
        return err_invalid(e, "--file: the name of the file is empty");
    return set_source(self, source, value, e);
}

static int apply_language(void *self, const struct cli_option *option UNUSED, const char *value,
                          struct sg_error *e)
{
    struct run_options *o = self;
    int r = sg_language_parse(value, &o->language, e);

    o->language_given = true;
    return r < 0 ? err_wrap(e, r, "--language") : 0;
}

static const struct cli_option options[] = {
    {"file", 'f', "FILE", "run the code in FILE; its suffix gives the language",
     .apply = apply_file},
    {"language", 'l', "LANG", LANGUAGES_HELP, .apply = apply_language},
    {"timeout", 0, "TIME", "wall-clock limit: 500ms, 30s (default), 5m, 1h", CAGE_TIMEOUT},
    {"output-limit", 0, "SIZE", "bytes kept of each stream (default 8M)",
     CAGE_SIZE(run_options, output_limit, 1, OUTPUT_LIMIT_MAX)},
    {"tty", 't', NULL, "run on a pseudo-terminal", CLI_FLAG(run_options, tty)},
    {"json", 0, NULL, "print one JSON object with the result", CLI_FLAG(run_options, json)},
    CAGE_ROWS};

const struct cli_syntax run_syntax = {options, ARRAY_SIZE(options), positional, 0};

/* ---- all together ---------------------------------------------------------------------------- */

static int check_whole(const struct run_options *o, struct sg_error *e)
{
    if (o->source == RUN_SOURCE_NONE)
        return err_invalid(e,
                           "nothing to run: give CODE, -f FILE, '-' for standard input, or -- CMD");
    if (o->source == RUN_SOURCE_COMMAND && o->language_given)
        return err_invalid(e, "--language is for code; a command after '--' runs as it is");
    if (o->tty && o->json)
        return err_invalid(e,
                           "--tty and --json exclude each other: a terminal needs its output live");
    return 0;
}

static int parse_into(struct run_options *o, int argc, char **argv, struct sg_error *e)
{
    char **rest;
    int r = cli_parse(&run_syntax, argc, argv, o, &rest, e);

    if (r < 0 || o->cage.help)
        return r;
    if (rest && !*rest)
        return err_invalid(e, "no command after '--'");
    if (rest) {
        r = set_source(o, RUN_SOURCE_COMMAND, *rest, e);
        if (r < 0)
            return r;
        o->command = rest;
    }
    return check_whole(o, e);
}

int run_options_parse(int argc, char **argv, struct run_options *ret, struct sg_error *e)
{
    struct run_options o = {.cage.timeout_ms = RUN_DEFAULT_TIMEOUT_MS, .language = SG_PYTHON};
    int r = parse_into(&o, argc, argv, e);

    if (r < 0) {
        run_options_done(&o);
        return r;
    }
    *ret = o;
    return 0;
}

void run_options_done(struct run_options *o)
{
    cage_options_done(&o->cage);
    *o = (struct run_options){0};
}
