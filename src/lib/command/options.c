#include "lib/command/options.h"

#include "lib/command/suggest.h"

#define NAME_MAX_LEN 32
#define SUGGEST_MAX  64
#define HELP_COLUMN  30

static const struct cli_option *find_name(const struct cli_syntax *s, const char *name, size_t len)
{
    for (size_t i = 0; i < s->n_options; i++)
        if (strncmp(s->options[i].name, name, len) == 0 && s->options[i].name[len] == '\0')
            return &s->options[i];
    return NULL;
}

static const struct cli_option *find_letter(const struct cli_syntax *s, char letter)
{
    for (size_t i = 0; i < s->n_options; i++)
        if (s->options[i].letter == letter)
            return &s->options[i];
    return NULL;
}

static int unknown_name(const struct cli_syntax *s, const char *name, size_t len,
                        struct sg_error *e)
{
    const char *names[SUGGEST_MAX];
    char word[NAME_MAX_LEN + 1];
    size_t n = s->n_options < SUGGEST_MAX ? s->n_options : SUGGEST_MAX;

    snprintf(word, sizeof(word), "%.*s", (int)(len < NAME_MAX_LEN ? len : NAME_MAX_LEN), name);
    for (size_t i = 0; i < n; i++)
        names[i] = s->options[i].name;
    const char *near = suggest_nearest(word, names, n);
    if (near)
        return err_invalid(e, "unknown option '--%s'; did you mean '--%s'?", word, near);
    return err_invalid(e, "unknown option '--%s'", word);
}

static int apply(const struct cli_syntax *s, const struct cli_option *o, void *self,
                 const char *value, struct sg_error *e)
{
    if (s->given)
        *(uint64_t *)(void *)((char *)self + s->given) |= 1ull << (o - s->options);
    return o->apply((char *)self + o->at, o, value, e);
}

/* arg is "--name" or "--name=value"; *i stands on it. */
static int parse_long(const struct cli_syntax *s, int argc, char **argv, int *i, void *self,
                      struct sg_error *e)
{
    const char *name = argv[*i] + 2, *value = strchr(name, '=');
    size_t len = value ? (size_t)(value - name) : strlen(name);
    const struct cli_option *o = find_name(s, name, len);

    if (!o)
        return unknown_name(s, name, len, e);
    if (!o->argument) {
        if (value)
            return err_invalid(e, "--%s takes no value", o->name);
        return apply(s, o, self, NULL, e);
    }
    if (value)
        return apply(s, o, self, value + 1, e);
    if (*i + 1 >= argc)
        return err_invalid(e, "--%s needs a value: --%s %s", o->name, o->name, o->argument);
    return apply(s, o, self, argv[++*i], e);
}

/* arg is "-x", "-xVALUE" or several flags in one. */
static int parse_short(const struct cli_syntax *s, int argc, char **argv, int *i, void *self,
                       struct sg_error *e)
{
    for (const char *p = argv[*i] + 1; *p; p++) {
        const struct cli_option *o = find_letter(s, *p);
        int r;

        if (!o)
            return err_invalid(e, "unknown option '-%c' in '%.32s'", *p, argv[*i]);
        if (!o->argument) {
            r = apply(s, o, self, NULL, e);
            if (r < 0)
                return r;
            continue;
        }
        if (p[1])
            return apply(s, o, self, p + 1, e);
        if (*i + 1 >= argc)
            return err_invalid(e, "-%c needs a value: -%c %s", o->letter, o->letter, o->argument);
        return apply(s, o, self, argv[++*i], e);
    }
    return 0;
}

static int parse_positional(const struct cli_syntax *s, const char *arg, void *self,
                            struct sg_error *e)
{
    if (!s->positional)
        return err_invalid(e, "unexpected argument '%.64s'", arg);
    return s->positional(self, arg, e);
}

/* With `command`, the second argument that is no option begins the rest. */
static int parse_all(const struct cli_syntax *syntax, bool command, int argc, char **argv,
                     void *self, char ***ret_rest, struct sg_error *e)
{
    char **rest = NULL;
    size_t n_positional = 0;

    for (int i = 1; i < argc; i++) {
        const char *arg = argv[i];
        bool is_option = arg[0] == '-' && arg[1];
        int r;

        if (strcmp(arg, "--") == 0 || (command && !is_option && n_positional > 0)) {
            rest = is_option ? &argv[i + 1] : &argv[i];
            break;
        }
        if (is_option && arg[1] == '-')
            r = parse_long(syntax, argc, argv, &i, self, e);
        else if (is_option)
            r = parse_short(syntax, argc, argv, &i, self, e);
        else
            r = parse_positional(syntax, arg, self, e);
        if (r < 0)
            return r;
        n_positional += !is_option;
    }
    if (rest && *rest && !syntax->positional)
        return parse_positional(syntax, *rest, self, e);
    *ret_rest = rest;
    return 0;
}

int cli_parse(const struct cli_syntax *syntax, int argc, char **argv, void *self, char ***ret_rest,
              struct sg_error *e)
{
    return parse_all(syntax, false, argc, argv, self, ret_rest, e);
}

int cli_parse_command(const struct cli_syntax *syntax, int argc, char **argv, void *self,
                      char ***ret_rest, struct sg_error *e)
{
    return parse_all(syntax, true, argc, argv, self, ret_rest, e);
}

static const struct cli_option plain_options[] = {
    {"json", 0, NULL, "print one JSON object", CLI_FLAG(cli_plain, json)},
    {"help", 'h', NULL, "show this text", CLI_FLAG(cli_plain, help)},
};
const struct cli_syntax cli_plain_syntax = {plain_options, ARRAY_SIZE(plain_options), NULL, 0};

int cli_parse_plain(int argc, char **argv, struct cli_plain *ret, struct sg_error *e)
{
    struct cli_plain plain = {0};
    char **rest;
    int r = cli_parse(&cli_plain_syntax, argc, argv, &plain, &rest, e);

    if (r == 0)
        *ret = plain;
    return r;
}

void cli_print_options(FILE *to, const struct cli_syntax *syntax)
{
    for (size_t i = 0; i < syntax->n_options; i++) {
        const struct cli_option *o = &syntax->options[i];
        char left[80], letter[8] = "    ";

        if (o->letter)
            snprintf(letter, sizeof(letter), "-%c, ", o->letter);
        snprintf(left, sizeof(left), "  %s--%s%s%s", letter, o->name, o->argument ? " " : "",
                 o->argument ? o->argument : "");
        if (strlen(left) < HELP_COLUMN)
            fprintf(to, "%-*s%s\n", HELP_COLUMN, left, o->help);
        else
            fprintf(to, "%s\n%-*s%s\n", left, HELP_COLUMN, "", o->help);
    }
}
