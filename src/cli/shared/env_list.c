#include "cli/shared/env_list.h"

#include "cli/shared/text_file.h"

static bool name_char(char c, bool first)
{
    bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';

    return letter || (!first && ((c >= '0' && c <= '9') || c == '.' || c == '-'));
}

/* Length of the name at the start of s, 0 if there is none. */
static size_t name_length(const char *s)
{
    size_t n = 0;

    while (name_char(s[n], n == 0))
        n++;
    return n;
}

static char **find(const struct env_list *l, const char *name, size_t len)
{
    for (size_t i = 0; i < l->n; i++)
        if (strncmp(l->v[i], name, len) == 0 && l->v[i][len] == '=')
            return &l->v[i];
    return NULL;
}

bool env_list_has(const struct env_list *l, const char *name)
{
    return find(l, name, strlen(name)) != NULL;
}

static int append(struct env_list *l, const char *what, const char *assignment, struct sg_error *e)
{
    if (l->n == ENV_LIST_MAX)
        return err_set(e, SG_ERR_INVALID, -E2BIG, "%s: more than %d variables", what, ENV_LIST_MAX);
    if (!l->v)
        l->v = xcalloc(ENV_LIST_MAX + 1, sizeof(*l->v));
    l->v[l->n++] = xstrdup(assignment);
    return 0;
}

int env_list_set(struct env_list *l, const char *what, const char *assignment, struct sg_error *e)
{
    size_t len = name_length(assignment);

    if (len == 0 || assignment[len] != '=')
        return err_invalid(e, "%s: expected NAME=value with a name of letters, digits and '_'",
                           what);
    if (strlen(assignment) > ENV_VARIABLE_MAX)
        return err_set(e, SG_ERR_INVALID, -E2BIG, "%s: '%.*s' is longer than 128 KiB", what,
                       (int)(len < 64 ? len : 64), assignment);
    char **old = find(l, assignment, len);
    if (!old)
        return append(l, what, assignment, e);
    free(*old);
    *old = xstrdup(assignment);
    return 0;
}

int env_list_set_or_copy(struct env_list *l, const char *what, const char *s, struct sg_error *e)
{
    AUTO(free_p) char *assignment = NULL;
    size_t len = name_length(s);

    if (len == 0 || s[len] != '\0')
        return env_list_set(l, what, s, e);
    const char *value = getenv(s);
    if (!value)
        return err_set(e, SG_ERR_NOT_FOUND, -ENOENT,
                       "%s: '%.64s' is not set in the environment: give it a value, %.64s=value",
                       what, s, s);
    if (asprintf(&assignment, "%s=%s", s, value) < 0)
        return err_set(e, SG_ERR_INTERNAL, -ENOMEM, "out of memory");
    return env_list_set(l, what, assignment, e);
}

static char unescape(char c)
{
    switch (c) {
    case 'n':
        return '\n';
    case 't':
        return '\t';
    case '"':
    case '\\':
    case '$':
        return c;
    default:
        return 0;
    }
}

/* Takes the quotes off a value in place. 0, or -EINVAL if the quotes do not close at its end. */
static int unquote(char *value)
{
    char quote = *value, *from = value + 1, *to = value;

    if (quote != '"' && quote != '\'')
        return 0;
    for (; *from && *from != quote; from++) {
        char c = quote == '"' && *from == '\\' ? unescape(from[1]) : 0;

        *to++ = c ? c : *from;
        from += c != 0;
    }
    if (*from != quote || from[1] != '\0')
        return -EINVAL;
    *to = '\0';
    return 0;
}

int env_list_parse(struct env_list *l, const char *path, char *text, struct sg_error *e)
{
    unsigned number = 0;
    char *line;

    while ((line = text_next_line(&text, &number))) {
        char what[192];
        size_t len = name_length(line);

        if (*line == '\0' || *line == '#')
            continue;
        snprintf(what, sizeof(what), "%.160s:%u", path, number);
        if (len > 0 && line[len] == '=' && unquote(line + len + 1) < 0)
            return err_invalid(e,
                               "%s: the quotes around the value of '%.*s' do not close at its end",
                               what, (int)(len < 64 ? len : 64), line);
        int r = env_list_set(l, what, line, e);
        if (r < 0)
            return r;
    }
    return 0;
}

void env_list_done(struct env_list *l)
{
    for (size_t i = 0; i < l->n; i++)
        free(l->v[i]);
    free(l->v);
    *l = (struct env_list){0};
}
