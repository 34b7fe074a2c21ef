#include "cli/local/run_inputs.h"

#include "cli/shared/text_file.h"

#define CODE_HINT "put the data into a file and show it with --mount"

/* --language decides, else the file's suffix. A file without a suffix, such as a pipe, is in the
 * default language. */
static int language_of(const struct run_options *o, enum sg_language *ret, struct sg_error *e)
{
    const char *base, *dot;

    *ret = o->language;
    if (o->language_given || o->source != RUN_SOURCE_FILE)
        return 0;
    base = strrchr(o->source_text, '/');
    base = base ? base + 1 : o->source_text;
    dot = strrchr(base, '.');
    if (!dot || dot == base)
        return 0;
    return sg_language_of_path(o->source_text, ret, e);
}

static int load_code(const struct run_options *o, struct run_inputs *in, struct sg_error *e)
{
    switch (o->source) {
    case RUN_SOURCE_CODE:
        in->code = xstrdup(o->source_text);
        in->code_len = strlen(in->code);
        return 0;
    case RUN_SOURCE_FILE:
        return text_file_load("code", o->source_text, RUN_CODE_MAX, CODE_HINT, &in->code,
                              &in->code_len, e);
    case RUN_SOURCE_STDIN:
        return text_fd_load("code", "standard input", STDIN_FILENO, RUN_CODE_MAX, CODE_HINT,
                            &in->code, &in->code_len, e);
    case RUN_SOURCE_NONE:
    case RUN_SOURCE_COMMAND:
    default:
        return 0;
    }
}

/* Copies our TERM: a program with a terminal draws for the one that shows it, which is ours. */
static int add_term(const struct run_options *o, struct env_list *env, struct sg_error *e)
{
    if (!o->tty || !getenv("TERM") || env_list_has(env, "TERM"))
        return 0;
    return env_list_set_or_copy(env, "--tty", "TERM", e);
}

int run_inputs_load(const struct run_options *o, struct run_inputs *ret, struct sg_error *e)
{
    *ret = (struct run_inputs){0};
    int r = language_of(o, &ret->language, e);

    if (r == 0)
        r = cage_inputs_load(&o->cage, &ret->cage, e);
    if (r == 0)
        r = add_term(o, &ret->cage.env, e);
    return r < 0 ? r : load_code(o, ret, e);
}

void run_inputs_done(struct run_inputs *in)
{
    free(in->code);
    cage_inputs_done(&in->cage);
    *in = (struct run_inputs){0};
}
