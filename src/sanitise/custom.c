/* The operator's patterns. They see one line at a time, of at most SANITISE_HOLD bytes, as the
 * built-in kinds have left it, with marks in it. A match may take a mark as a whole; one that would
 * cut it gives way. */
#include <ctype.h>
#include <string.h>

#include "sanitise/impl.h"

#define NAME_MAX_   32
#define REGEX_MAX   1024
#define TEXT_MAX    (64u * 1024)
#define MATCHES_MAX 16384

struct match {
    uint32_t from, to, id;
};

struct custom {
    char *names[SANITISE_CUSTOM_MAX];
    char *regexes[SANITISE_CUSTOM_MAX];
    size_t n;
    hs_database_t *db;
    hs_scratch_t *scratch;
    struct match *matches;
    size_t n_matches;
};

size_t custom_count(const struct custom *c)
{
    return c ? c->n : 0;
}

const char *custom_name(const struct custom *c, size_t i)
{
    return i < custom_count(c) ? c->names[i] : NULL;
}

void custom_free(struct custom *c)
{
    if (!c)
        return;
    for (size_t i = 0; i < c->n; i++) {
        free(c->names[i]);
        free(c->regexes[i]);
    }
    hs_free_scratch(c->scratch);
    hs_free_database(c->db);
    free(c->matches);
    free(c);
}

/* ---- reading them ---------------------------------------------------------------------------- */

static int check_name(const struct custom *c, const char *name, unsigned line, struct sg_error *e)
{
    size_t len = strlen(name);

    if (len == 0 || len > NAME_MAX_ || !islower((unsigned char)name[0]) ||
        strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789_") != len)
        return err_set(e, SG_ERR_INVALID, -EINVAL,
                       "line %u: a name is a letter and up to %d of a-z, 0-9 and _", line,
                       NAME_MAX_ - 1);
    for (unsigned k = 0; k < KIND_CUSTOM; k++) {
        if (strcmp(builtin_name(k), name) == 0)
            return err_set(e, SG_ERR_INVALID, -EINVAL,
                           "line %u: '%s' is the name of a built-in kind", line, name);
    }
    for (size_t i = 0; i < c->n; i++) {
        if (strcmp(c->names[i], name) == 0)
            return err_set(e, SG_ERR_INVALID, -EINVAL, "line %u: '%s' is there already", line,
                           name);
    }
    return 0;
}

static int check_regex(const char *regex, unsigned line, struct sg_error *e)
{
    hs_compile_error_t *error = NULL;
    hs_database_t *db = NULL;

    if (hs_compile(regex, HS_FLAG_SOM_LEFTMOST, HS_MODE_BLOCK, NULL, &db, &error) == HS_SUCCESS) {
        hs_free_database(db);
        return 0;
    }
    err_set(e, SG_ERR_INVALID, -EINVAL, "line %u: %s", line, error ? error->message : "no memory");
    hs_free_compile_error(error);
    return -EINVAL;
}

static char *trimmed(char *text)
{
    char *end = text + strlen(text);

    while (*text == ' ' || *text == '\t')
        text++;
    while (end > text && (end[-1] == ' ' || end[-1] == '\t' || end[-1] == '\r'))
        *--end = '\0';
    return text;
}

static int read_line(struct custom *c, char *text, unsigned line, struct sg_error *e)
{
    char *begin = trimmed(text), *equals = strchr(begin, '=');

    if (!*begin || *begin == '#')
        return 0;
    if (!equals)
        return err_set(e, SG_ERR_INVALID, -EINVAL, "line %u: write `name = regular expression`",
                       line);
    *equals = '\0';
    char *name = trimmed(begin), *regex = trimmed(equals + 1);
    int r = check_name(c, name, line, e);
    if (r < 0)
        return r;
    if (c->n == SANITISE_CUSTOM_MAX)
        return err_set(e, SG_ERR_LIMIT, -E2BIG, "line %u: there are %d patterns already", line,
                       SANITISE_CUSTOM_MAX);
    if (!*regex || strlen(regex) > REGEX_MAX)
        return err_set(e, SG_ERR_INVALID, -EINVAL, "line %u: an expression has 1 to %d characters",
                       line, REGEX_MAX);
    r = check_regex(regex, line, e);
    if (r < 0)
        return r;
    c->names[c->n] = xstrdup(name);
    c->regexes[c->n++] = xstrdup(regex);
    return 0;
}

static int compile_all(struct custom *c, struct sg_error *e)
{
    unsigned flags[SANITISE_CUSTOM_MAX], ids[SANITISE_CUSTOM_MAX];
    const char *texts[SANITISE_CUSTOM_MAX];
    hs_compile_error_t *error = NULL;

    for (unsigned i = 0; i < c->n; i++) {
        flags[i] = HS_FLAG_SOM_LEFTMOST;
        ids[i] = i;
        texts[i] = c->regexes[i];
    }
    if (hs_compile_multi(texts, flags, ids, (unsigned)c->n, HS_MODE_BLOCK, NULL, &c->db, &error) !=
        HS_SUCCESS) {
        err_set(e, SG_ERR_INVALID, -EINVAL, "the patterns together: %s",
                error ? error->message : "no memory");
        hs_free_compile_error(error);
        return -EINVAL;
    }
    if (hs_alloc_scratch(c->db, &c->scratch) != HS_SUCCESS)
        return err_set(e, SG_ERR_INTERNAL, -ENOMEM, "no memory for the patterns");
    c->matches = xcalloc(MATCHES_MAX, sizeof(*c->matches));
    return 0;
}

int custom_new(const char *text, struct custom **ret, struct sg_error *e)
{
    size_t len = strlen(text);

    if (len > TEXT_MAX)
        return err_set(e, SG_ERR_LIMIT, -E2BIG, "more than %u bytes", TEXT_MAX);
    AUTO(free_p) char *copy = xstrdup(text);
    struct custom *c = xcalloc(1, sizeof(*c));
    char *rest = copy;
    int r = 0;
    for (unsigned line = 1; rest && r >= 0; line++) {
        char *one = strsep(&rest, "\n");
        r = read_line(c, one, line, e);
    }
    if (r >= 0 && c->n)
        r = compile_all(c, e);
    if (r < 0 || c->n == 0) {
        custom_free(c);
        c = NULL;
    }
    if (r >= 0)
        *ret = c;
    return r < 0 ? r : 0;
}

/* ---- using them ------------------------------------------------------------------------------ */

static int on_custom(unsigned id, unsigned long long from, unsigned long long to, unsigned flags,
                     void *arg)
{
    struct custom *c = arg;
    struct match *last = c->n_matches ? &c->matches[c->n_matches - 1] : NULL;

    (void)flags;
    /* They come by their ends: the same beginning again is a longer match. */
    if (last && last->id == id && last->from == from) {
        last->to = (uint32_t)to;
        return 0;
    }
    if (c->n_matches == MATCHES_MAX)
        return 1;
    c->matches[c->n_matches++] = (struct match){(uint32_t)from, (uint32_t)to, id};
    return 0;
}

static int by_beginning(const void *a, const void *b)
{
    const struct match *x = a, *y = b;

    if (x->from != y->from)
        return x->from < y->from ? -1 : 1;
    if (x->to != y->to)
        return x->to > y->to ? -1 : 1;
    return x->id < y->id ? -1 : x->id > y->id;
}

static size_t backslashes(const char *text, size_t at)
{
    size_t n = 0;

    while (n < at && text[at - 1 - n] == '\\')
        n++;
    return n;
}

/* Takes all of an escape or nothing of it: half of one would not be JSON. */
static void whole_escapes(const char *text, size_t len, struct match *m)
{
    for (uint32_t i = 1; i <= 4 && i < m->from; i++) {
        if (text[m->from - i] == 'u' && backslashes(text, m->from - i) % 2)
            m->from -= i;
    }
    if (backslashes(text, m->from) % 2)
        m->from--;
    for (uint32_t i = 1; i <= 4 && i < m->to; i++) {
        if (text[m->to - i] == 'u' && backslashes(text, m->to - i) % 2 && m->to + 5 - i <= len)
            m->to += 5 - i;
    }
    if (m->to < len && backslashes(text, m->to) % 2)
        m->to++;
}

static void spare_marks(struct match *m, const struct mark *marks, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (m->from > marks[i].start && m->from < marks[i].end)
            m->from = marks[i].end;
        if (m->to > marks[i].start && m->to < marks[i].end)
            m->to = marks[i].start;
    }
}

void custom_line(struct custom *c, const char *text, size_t len, const struct mark *marks,
                 size_t n_marks, struct strbuf *out, struct sanitise_counts *counts)
{
    size_t done = 0;
    bool after_mark = false;

    c->n_matches = 0;
    hs_scan(c->db, text, (unsigned)len, 0, c->scratch, on_custom, c);
    qsort(c->matches, c->n_matches, sizeof(*c->matches), by_beginning);
    for (size_t i = 0; i < c->n_matches; i++) {
        struct match m = c->matches[i];
        whole_escapes(text, len, &m);
        spare_marks(&m, marks, n_marks);
        if (m.to <= done || m.from >= m.to)
            continue;
        if (m.from > done)
            strbuf_add(out, text + done, m.from - done);
        if (m.from >= done || !after_mark) {
            mark_add(out, c->names[m.id]);
            counts->of[KIND_CUSTOM + m.id]++;
        }
        after_mark = true;
        done = m.to;
    }
    strbuf_add(out, text + done, len - done);
}
