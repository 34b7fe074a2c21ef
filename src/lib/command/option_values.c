/* The values that options have in common: see the CLI_* macros of options.h. */
#include "lib/command/options.h"

#include <string.h>

#include "lib/text/parse.h"

#define FLAG_NAME_MAX 40
#define WORDS_MAX     128

/* "--name", for messages. */
static const char *flag_name(const struct cli_option *o, char buf[FLAG_NAME_MAX])
{
    snprintf(buf, FLAG_NAME_MAX, "--%s", o->name);
    return buf;
}

int cli_flag(void *to, const struct cli_option *o UNUSED, const char *value UNUSED,
             struct sg_error *e UNUSED)
{
    *(bool *)to = true;
    return 0;
}

int cli_text(void *to, const struct cli_option *o UNUSED, const char *value,
             struct sg_error *e UNUSED)
{
    *(const char **)to = value;
    return 0;
}

int cli_filled(void *to, const struct cli_option *o, const char *value, struct sg_error *e)
{
    if (!*value)
        return err_invalid(e, "--%s: %s is empty", o->name, o->words);
    return cli_text(to, o, value, e);
}

/* "a, b or c" */
static void join_words(const char *words, char buf[WORDS_MAX])
{
    size_t n = 0;

    for (const char *p = words; *p && n < WORDS_MAX - 5; p++) {
        const char *between = strchr(p + 1, '|') ? ", " : " or ";

        if (*p == '|')
            n += (size_t)snprintf(buf + n, WORDS_MAX - n, "%s", between);
        else
            buf[n++] = *p;
    }
    buf[n] = '\0';
}

int cli_word(void *to, const struct cli_option *o, const char *value, struct sg_error *e)
{
    size_t len = strlen(value);
    char all[WORDS_MAX];

    for (const char *word = o->words; word; word = strchr(word, '|')) {
        word += *word == '|';
        if (strncmp(word, value, len) == 0 && strcspn(word, "|") == len)
            return cli_text(to, o, value, e);
    }
    join_words(o->words, all);
    return err_invalid(e, "--%s '%.64s' is not %s", o->name, value, all);
}

int cli_count(void *to, const struct cli_option *o, const char *value, struct sg_error *e)
{
    char name[FLAG_NAME_MAX];

    return parse_u64(flag_name(o, name), value, o->least, o->most, to, e);
}

int cli_time(void *to, const struct cli_option *o, const char *value, struct sg_error *e)
{
    char name[FLAG_NAME_MAX];
    uint64_t ms;
    int r = parse_duration_ms(flag_name(o, name), value, &ms, e);

    if (r < 0)
        return r;
    if (ms < o->least || ms > o->most)
        return err_set(e, SG_ERR_INVALID, -ERANGE, "%s '%.64s' is not between %s", name, value,
                       o->words);
    *(uint64_t *)to = ms;
    return 0;
}
