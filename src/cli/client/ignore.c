#include "cli/client/ignore.h"

#include <fnmatch.h>
#include <string.h>

#define BLANKS " \t\r"

/* ---- patterns -------------------------------------------------------------------------------- */

/* Whether one component matches one of the pattern; * matches a dot at its begin too. */
static bool component_matches(const char *pattern, size_t pattern_len, const char *name,
                              size_t name_len)
{
    AUTO(free_p) char *p = strndup(pattern, pattern_len), *n = strndup(name, name_len);

    if (!p || !n)
        abort();
    return fnmatch(p, n, 0) == 0;
}

/* The rest behind this component, or NULL at the end. */
static const char *behind(const char *p, size_t len)
{
    return p[len] ? p + len + 1 : NULL;
}

/* "**" stands for any number of components, also none. If what follows it does not match, it takes
 * one more; only the last one has to, since those before it could take no less. */
bool ignore_match(const char *pattern, const char *path)
{
    const char *again = NULL, *from = NULL;

    while (path) {
        size_t plen = pattern ? strcspn(pattern, "/") : 0, len = strcspn(path, "/");

        if (pattern && plen == 2 && memcmp(pattern, "**", 2) == 0) {
            again = behind(pattern, plen);
            if (!again)
                return true;
            pattern = again;
            from = path;
        } else if (pattern && component_matches(pattern, plen, path, len)) {
            pattern = behind(pattern, plen);
            path = behind(path, len);
        } else if (again && (from = behind(from, strcspn(from, "/")))) {
            pattern = again;
            path = from;
        } else {
            return false;
        }
    }
    return !pattern;
}

/* The pattern, or what is above the path: "a/b/c", then "a/b", then "a". */
static bool rule_matches(const char *pattern, const char *path)
{
    AUTO(free_p) char *part = xstrdup(path);

    for (char *slash; !ignore_match(pattern, part); *slash = '\0') {
        slash = strrchr(part, '/');
        if (!slash)
            return false;
    }
    return true;
}

bool ignore_has(const struct ignore *g, const char *path)
{
    bool ignored = false;

    for (size_t i = 0; i < g->n; i++)
        if (ignored == g->rules[i].keeps && rule_matches(g->rules[i].pattern, path))
            ignored = !g->rules[i].keeps;
    return ignored;
}

/* ---- the file -------------------------------------------------------------------------------- */

/* Writes the path without empty and "." components, and without slashes at its ends. ".." takes the
 * one before it away. */
static char *clean(const char *p, size_t len)
{
    char *out = xcalloc(1, len + 1);
    size_t n = 0;

    for (size_t i = 0; i < len;) {
        size_t part = 0;

        while (i + part < len && p[i + part] != '/')
            part++;
        if (part == 2 && memcmp(p + i, "..", 2) == 0) {
            while (n > 0 && out[--n] != '/')
                ;
            out[n] = '\0';
        } else if (part > 0 && !(part == 1 && p[i] == '.')) {
            if (n > 0)
                out[n++] = '/';
            memcpy(out + n, p + i, part);
            n += part;
        }
        i += part + 1;
    }
    out[n] = '\0';
    return out;
}

static void add_rule(struct ignore *g, const char *p, size_t len)
{
    struct ignore_rule rule = {.keeps = p[0] == '!'};
    size_t blanks;

    p += rule.keeps;
    len -= rule.keeps;
    for (blanks = 0; blanks < len && strchr(BLANKS, p[blanks]); blanks++)
        ;
    rule.pattern = clean(p + blanks, len - blanks);
    if (!rule.pattern[0] && len - blanks == 0) {
        free(rule.pattern);
        return;
    }
    if (!rule.pattern[0]) { /* ".": everything */
        free(rule.pattern);
        rule.pattern = xstrdup("**");
    }
    g->rules = xgrow(g->rules, g->n, &g->cap, sizeof(*g->rules));
    g->rules[g->n++] = rule;
    g->has_exceptions |= rule.keeps;
}

void ignore_read(const char *text, struct ignore *ret)
{
    *ret = (struct ignore){0};
    if (strncmp(text, "\xef\xbb\xbf", 3) == 0)
        text += 3;
    for (const char *p = text; *p;) {
        size_t len = strcspn(p, "\n"), from = 0, to = len;

        if (p[0] != '#') {
            while (from < to && strchr(BLANKS, p[from]))
                from++;
            while (to > from && strchr(BLANKS, p[to - 1]))
                to--;
            if (to > from)
                add_rule(ret, p + from, to - from);
        }
        p += len + (p[len] == '\n');
    }
}

void ignore_done(struct ignore *g)
{
    for (size_t i = 0; i < g->n; i++)
        free(g->rules[i].pattern);
    free(g->rules);
    *g = (struct ignore){0};
}
