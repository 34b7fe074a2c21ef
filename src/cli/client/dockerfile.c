#include "cli/client/dockerfile.h"

#include <ctype.h>
#include <stdarg.h>
#include <string.h>

#define DEPTH_MAX 16u
#define BLANKS    " \t\r"

int dockerfile_wrong(struct sg_error *e, const struct docker_line *l, const char *fmt, ...)
{
    char text[400];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    return err_invalid(e, "line %u: %s", l->number, text);
}

/* ---- lines ----------------------------------------------------------------------------------- */

struct reader {
    const char *at; /* the line that comes next */
    unsigned number;
    struct sg_error *e;
};

struct text_line {
    const char *p;
    size_t len; /* without its end */
};

static bool next_line(struct reader *r, struct text_line *ret)
{
    if (!*r->at)
        return false;
    *ret = (struct text_line){r->at, strcspn(r->at, "\n")};
    r->at += ret->len + (r->at[ret->len] == '\n');
    r->number++;
    if (ret->len > 0 && ret->p[ret->len - 1] == '\r')
        ret->len--;
    return true;
}

static const char *skip_blanks(const struct text_line *t)
{
    size_t n = 0;

    while (n < t->len && strchr(BLANKS, t->p[n]))
        n++;
    return t->p + n;
}

static bool is_empty(const struct text_line *t)
{
    return skip_blanks(t) == t->p + t->len;
}

static bool is_comment(const struct text_line *t)
{
    const char *p = skip_blanks(t);

    return p < t->p + t->len && *p == '#';
}

/* "# escape=`" at the top changes what a backslash means. */
static int check_directive(struct reader *r, const struct text_line *t)
{
    const char *p = skip_blanks(t) + 1, *end = t->p + t->len;

    while (p < end && strchr(BLANKS, *p))
        p++;
    if (end - p < 7 || strncasecmp(p, "escape=", 7) != 0 || (end - p == 8 && p[7] == '\\'))
        return 0;
    return err_invalid(r->e, "line %u: another escape character than \\ is not supported",
                       r->number);
}

/* Whether the line goes on in the next one. Appends it without the backslash. */
static bool add_line(struct strbuf *out, const struct text_line *t)
{
    size_t len = t->len;

    while (len > 0 && strchr(BLANKS, t->p[len - 1]))
        len--;
    bool more = len > 0 && t->p[len - 1] == '\\';
    strbuf_add(out, t->p, more ? len - 1 : len);
    return more;
}

/* Reads an instruction with the lines that it goes on in. */
static int read_whole(struct reader *r, const struct text_line *first, struct strbuf *out)
{
    struct text_line t = *first;
    bool more = add_line(out, &t);

    while (more && next_line(r, &t))
        if (!is_comment(&t) && !is_empty(&t))
            more = add_line(out, &t);
    return out->truncated ? err_invalid(r->e, "line %u: the instruction is too long", r->number)
                          : 0;
}

static int split_keyword(struct docker_line *l, const char *text, struct sg_error *e)
{
    const char *p = text + strspn(text, BLANKS);
    size_t len = strcspn(p, BLANKS), end;

    if (len >= sizeof(l->keyword))
        return dockerfile_wrong(e, l, "unknown instruction '%.32s'", p);
    for (size_t i = 0; i < len; i++)
        l->keyword[i] = (char)toupper((unsigned char)p[i]);
    p += len + strspn(p + len, BLANKS);
    for (end = strlen(p); end > 0 && strchr(BLANKS, p[end - 1]); end--)
        ;
    l->rest = strndup(p, end);
    if (!l->rest)
        abort();
    return 0;
}

/* ---- heredocs -------------------------------------------------------------------------------- */

static bool is_name(char c)
{
    return isalnum((unsigned char)c) || c == '_';
}

/* Reads "<<NAME", "<<-NAME", "<<'NAME'" at p; returns its length, or 0. */
static size_t heredoc_mark(const char *p, struct docker_heredoc *ret, bool *ret_tabs)
{
    if (strncmp(p, "<<", 2) != 0 || p[2] == '<')
        return 0;
    size_t at = 2;
    *ret_tabs = p[at] == '-';
    at += *ret_tabs;
    char quote = p[at] == '\'' || p[at] == '"' ? p[at++] : '\0';
    size_t len = 0;
    while (is_name(p[at + len]))
        len++;
    if (len == 0 || (quote && p[at + len] != quote))
        return 0;
    ret->name = strndup(p + at, len);
    if (!ret->name)
        abort();
    ret->literal = quote != '\0';
    return at + len + (quote != '\0');
}

static int read_heredoc(struct reader *r, const struct docker_line *l, struct docker_heredoc *h,
                        bool tabs)
{
    AUTO(strbuf_done) struct strbuf text = strbuf_upto(DOCKERFILE_MAX);
    struct text_line t;

    while (next_line(r, &t)) {
        for (; tabs && t.len > 0 && t.p[0] == '\t'; t.len--)
            t.p++;
        if (t.len == strlen(h->name) && memcmp(t.p, h->name, t.len) == 0) {
            h->text = strbuf_detach(&text, NULL);
            return 0;
        }
        strbuf_add(&text, t.p, t.len);
        strbuf_addch(&text, '\n');
    }
    return dockerfile_wrong(r->e, l, "no line '%.64s' ends the text that begins there", h->name);
}

static int read_heredocs(struct reader *r, struct docker_line *l)
{
    char quote = '\0';

    if (strcmp(l->keyword, "RUN") != 0 && strcmp(l->keyword, "COPY") != 0 &&
        strcmp(l->keyword, "ADD") != 0)
        return 0;
    for (const char *p = l->rest; *p; p++) {
        struct docker_heredoc *h = &l->heredocs[l->n_heredocs];
        bool tabs;

        if (*p == '\\' && p[1] && quote != '\'')
            p++;
        else if (quote)
            quote = *p == quote ? '\0' : quote;
        else if (*p == '\'' || *p == '"')
            quote = *p;
        else if (*p == '<' && l->n_heredocs < DOCKER_HEREDOCS_MAX) {
            size_t len = heredoc_mark(p, h, &tabs);
            if (len > 0) {
                l->n_heredocs++;
                int e = read_heredoc(r, l, h, tabs);
                if (e < 0)
                    return e;
                p += len - 1;
            } else {
                p += strspn(p, "<") - 1;
            }
        }
    }
    return 0;
}

/* ---- the file -------------------------------------------------------------------------------- */

int dockerfile_read(const char *text, struct dockerfile *ret, struct sg_error *e)
{
    struct reader r = {.at = text, .e = e};
    struct text_line t;
    bool top = true; /* only comments so far */
    int err = 0;

    *ret = (struct dockerfile){0};
    while (err == 0 && next_line(&r, &t)) {
        AUTO(strbuf_done) struct strbuf whole = strbuf_upto(DOCKERFILE_WORD_MAX);

        if (is_comment(&t)) {
            err = top ? check_directive(&r, &t) : 0;
            continue;
        }
        top = false;
        if (is_empty(&t))
            continue;
        ret->lines = xgrow(ret->lines, ret->n, &ret->cap, sizeof(*ret->lines));
        struct docker_line *l = &ret->lines[ret->n++];
        *l = (struct docker_line){.number = r.number};
        err = read_whole(&r, &t, &whole);
        if (err == 0)
            err = split_keyword(l, whole.buf, e);
        if (err == 0)
            err = read_heredocs(&r, l);
    }
    if (err < 0)
        dockerfile_done(ret);
    return err;
}

void dockerfile_done(struct dockerfile *f)
{
    for (size_t i = 0; i < f->n; i++) {
        for (size_t k = 0; k < f->lines[i].n_heredocs; k++) {
            free(f->lines[i].heredocs[k].name);
            free(f->lines[i].heredocs[k].text);
        }
        free(f->lines[i].rest);
    }
    free(f->lines);
    *f = (struct dockerfile){0};
}

/* ---- words ----------------------------------------------------------------------------------- */

/* The length of the word at p, quotes and all. 0: a quote is not closed. */
static size_t word_len(const char *p)
{
    char quote = '\0';
    size_t n = 0;

    for (; p[n] && (quote || !strchr(BLANKS, p[n])); n++) {
        if (p[n] == '\\' && p[n + 1] && quote != '\'')
            n++;
        else if (quote)
            quote = p[n] == quote ? '\0' : quote;
        else if (p[n] == '\'' || p[n] == '"')
            quote = p[n];
    }
    return quote ? 0 : n;
}

int dockerfile_words(const struct docker_line *l, const char *text, json_t **ret,
                     struct sg_error *e)
{
    json_t *words = json_array();

    for (const char *p = text + strspn(text, BLANKS); *p; p += strspn(p, BLANKS)) {
        size_t len = word_len(p);

        if (len == 0) {
            json_decref(words);
            return dockerfile_wrong(e, l, "%s has a quote that is not closed", l->keyword);
        }
        if (json_array_append_new(words, json_stringn(p, len)) < 0) {
            json_decref(words);
            return dockerfile_wrong(e, l, "%s has a word that is not UTF-8", l->keyword);
        }
        p += len;
    }
    *ret = words;
    return 0;
}

json_t *dockerfile_exec_form(const char *text)
{
    json_t *list = text[0] == '[' ? json_loads(text, 0, NULL) : NULL, *one;
    size_t i;

    json_array_foreach(list, i, one)
    {
        if (!json_is_string(one)) {
            json_decref(list);
            return NULL;
        }
    }
    return list;
}

/* ---- variables ------------------------------------------------------------------------------- */

struct expansion {
    const struct docker_line *line;
    const struct docker_vars *vars;
    bool for_env;
    bool quotes; /* quotes and backslashes are taken away */
    struct strbuf *out;
    struct sg_error *e;
    unsigned depth; /* of words in words */
};

static void put_char(const struct expansion *x, char c, char next)
{
    /* A backslash before anything else stays one on the server. */
    if (x->for_env && (c == '$' || (c == '\\' && (next == '$' || next == '\\' || !next))))
        strbuf_addch(x->out, '\\');
    strbuf_addch(x->out, c);
}

static void put_text(const struct expansion *x, const char *text)
{
    for (; *text; text++)
        put_char(x, text[0], text[1]);
}

static int expand(const struct expansion *x, const char *p);

static void put_variable(const struct expansion *x, const char *name)
{
    const char *env = json_string_value(json_object_get(x->vars->envs, name));
    const char *arg = json_string_value(json_object_get(x->vars->args, name));

    if (x->for_env && (env || !arg))
        strbuf_addf(x->out, "${%s}", name);
    else
        put_text(x, env ? env : arg ? arg : "");
}

/* ${NAME:-WORD}, ${NAME:+WORD}, and both without the colon. */
static int put_modified(const struct expansion *x, const char *name, const char *modifier)
{
    const char *env = json_string_value(json_object_get(x->vars->envs, name));
    const char *value = env ? env : json_string_value(json_object_get(x->vars->args, name));
    bool colon = *modifier == ':';
    bool set = value && (!colon || *value);
    char kind = modifier[colon];

    if (kind != '-' && kind != '+')
        return dockerfile_wrong(x->e, x->line, "'${%.64s%.64s}' is not supported", name, modifier);
    if (x->depth == DEPTH_MAX)
        return dockerfile_wrong(x->e, x->line, "has variables in more than %u others", DEPTH_MAX);
    if (set == (kind == '+')) {
        struct expansion inner = *x;
        inner.depth++;
        return expand(&inner, modifier + colon + 1);
    }
    if (set)
        put_variable(x, name);
    return 0;
}

/* p is behind "${". Returns where it goes on, or NULL. */
static const char *braced(const struct expansion *x, const char *p)
{
    size_t name = 0, depth = 1, len;

    while (is_name(p[name]))
        name++;
    for (len = 0; p[len]; len++) {
        depth += p[len] == '{';
        depth -= p[len] == '}';
        if (depth == 0)
            break;
    }
    if (!p[len] || name == 0) {
        dockerfile_wrong(x->e, x->line, "'${%.32s' is no variable", p);
        return NULL;
    }
    AUTO(free_p) char *key = strndup(p, name), *modifier = strndup(p + name, len - name);
    if (!key || !modifier)
        abort();
    if (!*modifier)
        put_variable(x, key);
    else if (put_modified(x, key, modifier) < 0)
        return NULL;
    return p + len + 1;
}

/* p is at a '$'. */
static const char *variable(const struct expansion *x, const char *p)
{
    size_t name = 0;

    if (p[1] == '{')
        return braced(x, p + 2);
    while (is_name(p[1 + name]))
        name++;
    if (name == 0 || isdigit((unsigned char)p[1])) {
        put_char(x, '$', p[1]);
        return p + 1;
    }
    AUTO(free_p) char *key = strndup(p + 1, name);
    if (!key)
        abort();
    put_variable(x, key);
    return p + 1 + name;
}

static int expand(const struct expansion *x, const char *p)
{
    char quote = '\0';

    while (p && *p) {
        if (*p == '$' && quote != '\'') {
            p = variable(x, p);
        } else if (x->quotes && quote != '\'' && *p == '\\' && p[1] &&
                   (!quote || strchr("\"$\\", p[1]))) {
            put_char(x, p[1], p[2]);
            p += 2;
        } else if (!x->quotes && *p == '\\' && (p[1] == '$' || p[1] == '\\')) {
            put_char(x, p[1], p[2]);
            p += 2;
        } else if (x->quotes && (quote ? *p == quote : *p == '\'' || *p == '"')) {
            quote = quote ? '\0' : *p;
            p++;
        } else {
            put_char(x, p[0], p[1]);
            p++;
        }
    }
    if (!p)
        return -EINVAL;
    return x->out->truncated ? dockerfile_wrong(x->e, x->line, "a word is too long") : 0;
}

int dockerfile_expand(const struct docker_line *l, const struct docker_vars *v, const char *text,
                      bool for_env, struct strbuf *out, struct sg_error *e)
{
    return expand(&(struct expansion){l, v, for_env, true, out, e, 0}, text);
}

int dockerfile_expand_text(const struct docker_line *l, const struct docker_vars *v,
                           const char *text, struct strbuf *out, struct sg_error *e)
{
    return expand(&(struct expansion){l, v, false, false, out, e, 0}, text);
}
