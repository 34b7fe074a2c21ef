/* Applies the operator's patterns. They see one line at a time, of at most SANITISE_HOLD bytes,
 * after the built-in kinds have put their marks into it. A match may cover a whole mark; a match
 * that would cut a mark is shortened to leave it whole.
 *
 * PCRE2 matches them, without backtracking. Vectorscan is not used, because its older versions
 * (5.4.9) lose matches of some expressions, such as q[a-z]{0,3}q. A line that takes too much time
 * or memory to match counts as one match, since a sandbox may have made it so on purpose. */
#define PCRE2_CODE_UNIT_WIDTH 8
#include <ctype.h>
#include <pcre2.h>
#include <time.h>

#include "lib/sanitise/impl.h"

#define NAME_MAX_   32
#define REGEX_MAX   1024
#define TEXT_MAX    (64u * 1024)
#define MATCHES_MAX 8192
#define WORKSPACE   4096
#define STARTS      128         /* starts that are tried between two looks at the clock */
#define LINE_NS     20000000ull /* of processor time, for one pattern and line */

struct match {
    uint32_t from, to, id;
};

struct custom {
    char *names[SANITISE_CUSTOM_MAX];
    pcre2_code *codes[SANITISE_CUSTOM_MAX];
    size_t n;
    pcre2_match_data *data;
    pcre2_match_context *limits;
    int workspace[WORKSPACE];
    struct match matches[MATCHES_MAX];
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
        pcre2_code_free(c->codes[i]);
    }
    pcre2_match_data_free(c->data);
    pcre2_match_context_free(c->limits);
    free(c);
}

/* ---- reading them ---------------------------------------------------------------------------- */

static int check_name(const struct custom *c, const char *name, unsigned line, struct sg_error *e)
{
    size_t len = strlen(name);

    if (len == 0 || len > NAME_MAX_ || !islower((unsigned char)name[0]) ||
        strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789_") != len)
        return err_invalid(e, "line %u: a name is a letter and up to %d of a-z, 0-9 and _", line,
                           NAME_MAX_ - 1);
    for (unsigned k = 0; k < KIND_CUSTOM; k++) {
        if (strcmp(builtin_name(k), name) == 0)
            return err_invalid(e, "line %u: '%s' is the name of a built-in kind", line, name);
    }
    for (size_t i = 0; i < c->n; i++) {
        if (strcmp(c->names[i], name) == 0)
            return err_invalid(e, "line %u: there are two patterns '%s'", line, name);
    }
    return 0;
}

static int compile(const char *regex, unsigned line, pcre2_code **ret, struct sg_error *e)
{
    uint32_t empty = 0, references = 0;
    char why[160];
    int error;
    size_t at;
    pcre2_code *code =
        pcre2_compile((PCRE2_SPTR)regex, PCRE2_ZERO_TERMINATED,
                      PCRE2_NEVER_BACKSLASH_C | PCRE2_USE_OFFSET_LIMIT, &error, &at, NULL);

    if (!code) {
        pcre2_get_error_message(error, (PCRE2_UCHAR *)why, sizeof(why));
        return err_invalid(e, "line %u: %s (at character %zu)", line, why, at + 1);
    }
    pcre2_pattern_info(code, PCRE2_INFO_MATCHEMPTY, &empty);
    pcre2_pattern_info(code, PCRE2_INFO_BACKREFMAX, &references);
    if (empty || references) {
        pcre2_code_free(code);
        return err_invalid(e, "line %u: %s", line,
                           empty ? "the expression matches the empty string"
                                 : "the expression has a back reference, which is not supported");
    }
    *ret = code;
    return 0;
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
        return err_invalid(e, "line %u: write `name = regular expression`", line);
    *equals = '\0';
    char *name = trimmed(begin), *regex = trimmed(equals + 1);
    int r = check_name(c, name, line, e);
    if (r < 0)
        return r;
    if (c->n == SANITISE_CUSTOM_MAX)
        return err_set(e, SG_ERR_LIMIT, -E2BIG, "line %u: more than %d patterns", line,
                       SANITISE_CUSTOM_MAX);
    if (!*regex || strlen(regex) > REGEX_MAX)
        return err_invalid(e, "line %u: an expression has 1 to %d characters", line, REGEX_MAX);
    r = compile(regex, line, &c->codes[c->n], e);
    if (r < 0)
        return r;
    c->names[c->n++] = xstrdup(name);
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
    c->data = pcre2_match_data_create(2, NULL);
    c->limits = pcre2_match_context_create(NULL);
    if (r >= 0 && (!c->data || !c->limits))
        r = err_set(e, SG_ERR_INTERNAL, -ENOMEM, "no memory for the patterns");
    if (r < 0 || c->n == 0) {
        custom_free(c);
        c = NULL;
    }
    if (r >= 0)
        *ret = c;
    return r < 0 ? r : 0;
}

/* ---- using them ------------------------------------------------------------------------------ */

static uint64_t cpu_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* Finds all matches of one pattern, from left to right, each the longest. False: they cannot be
 * found within the limits. */
static bool find_all(struct custom *c, uint32_t id, const char *text, size_t len)
{
    const PCRE2_SIZE *found = pcre2_get_ovector_pointer(c->data);
    uint64_t began = len > STARTS ? cpu_ns() : 0;

    for (size_t at = 0; at < len;) {
        size_t last = at + STARTS < len ? at + STARTS : len;
        pcre2_set_offset_limit(c->limits, last);
        int r = pcre2_dfa_match(c->codes[id], (PCRE2_SPTR)text, len, at, PCRE2_NOTEMPTY, c->data,
                                c->limits, c->workspace, WORKSPACE);
        if (r == PCRE2_ERROR_NOMATCH) {
            if (began && cpu_ns() - began > LINE_NS)
                return false;
            at = last + 1;
            continue;
        }
        if (r < 0 || c->n_matches == MATCHES_MAX || found[1] <= at)
            return false;
        c->matches[c->n_matches++] = (struct match){(uint32_t)found[0], (uint32_t)found[1], id};
        at = found[1];
    }
    return true;
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

/* Widens a match to whole escapes: half of an escape would not be JSON. */
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
    for (uint32_t id = 0; id < c->n; id++) {
        if (find_all(c, id, text, len))
            continue;
        c->matches[0] = (struct match){0, (uint32_t)len, id};
        c->n_matches = 1;
        break;
    }
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
