/* Finds phone numbers: international ones, and those of North America and Ireland as people write
 * them there. Digits alone are no phone number, unless the text says so: `phone: 4155550132`. */

#include "lib/sanitise/impl.h"

#define DIGITS_MAX 20
#define GROUPS_MAX 8

struct groups {
    char digits[DIGITS_MAX + 1];
    size_t n;                   /* of groups */
    size_t ends[GROUPS_MAX];    /* where each ends in the text */
    uint8_t counts[GROUPS_MAX]; /* digits up to there */
    uint8_t sizes[GROUPS_MAX];
    char gaps[GROUPS_MAX]; /* the character after each group */
};

static bool is_gap(int c)
{
    return c == ' ' || c == '-' || c == '.';
}

/* Reads groups of digits with one separator between, or a bracket and a blank. */
static void read_groups(const struct view *v, size_t at, struct groups *g)
{
    size_t total = 0;

    *g = (struct groups){0};
    while (g->n < GROUPS_MAX) {
        size_t len = view_span(v, at, CC_DIGIT, DIGITS_MAX + 1);
        if (len == 0 || total + len > DIGITS_MAX)
            return;
        memcpy(g->digits + total, v->p + at, len);
        total += len;
        at += len;
        g->ends[g->n] = at;
        g->counts[g->n] = (uint8_t)total;
        g->sizes[g->n] = (uint8_t)len;
        int c = view_at(v, at);
        bool bracket = c == ')';
        if (bracket || (is_gap(c) && view_at(v, at + 1) == '('))
            c = view_at(v, ++at);
        g->gaps[g->n++] = (char)(bracket ? ')' : c);
        if (is_gap(c) || (!bracket && c == '('))
            at++;
        else if (!bracket)
            return;
        /* Skips the trunk zero, as in +44 (0)20 7946 0958. */
        if (view_at(v, at - 1) == '(' && view_has(v, at, "0)"))
            at += view_at(v, at + 2) == ' ' ? 3 : 2;
    }
}

static bool begins(const struct view *v, size_t at)
{
    int c = view_at(v, at - 1);

    if (cc_is(c, CC_ALNUM) || (c > 0 && strchr("_.-/+#$@&", c)))
        return false;
    return c != ':' || !cc_is(view_at(v, at - 2), CC_DIGIT);
}

static bool ends(const struct view *v, size_t at)
{
    int c = view_at(v, at), next = view_at(v, at + 1);

    if (cc_is(c, CC_ALNUM) || c == '_' || c == '/' || c == '%')
        return false;
    return !((c == '-' || c == '.' || c == ':' || c == ',') && cc_is(next, CC_DIGIT));
}

static bool found(const struct view *v, size_t start, size_t end, const struct groups *g,
                  struct finds *out)
{
    /* Includes the bracket that is closed after the first group. */
    if (g && end > g->ends[0] && g->gaps[0] == ')' && view_at(v, start - 1) == '(')
        start--;
    number_add(v, start, end, KIND_PHONE, out);
    return true;
}

/* Takes the longest run of groups that is a phone number, because another number may follow it. */
static bool international(const struct view *v, size_t start, const struct groups *g, size_t skip,
                          struct finds *out)
{
    for (size_t i = g->n; i-- > 0;) {
        if (g->counts[i] > skip && ends(v, g->ends[i]) &&
            check_phone(g->digits + skip, g->counts[i] - skip))
            return found(v, start, g->ends[i], g, out);
    }
    return false;
}

static bool sizes_are(const struct groups *g, size_t first, const char *sizes)
{
    size_t i = first;

    for (; *sizes; sizes++, i++) {
        if (i >= g->n || g->sizes[i] != *sizes - '0')
            return false;
    }
    return true;
}

static bool american(const struct view *v, size_t from, const struct groups *g, bool named,
                     struct finds *out)
{
    size_t first = g->sizes[0] == 1 && g->digits[0] == '1';
    char gap = g->gaps[first];

    if (g->n < first + 3 || !sizes_are(g, first, "334") || !check_nanp(g->digits + first) ||
        !ends(v, g->ends[first + 2]))
        return false;
    if (first && g->gaps[0] != gap && gap != ')')
        return false;
    if (gap != ')' && (g->gaps[first + 1] != gap || (gap == ' ' && !named)))
        return false;
    if (gap == ')' && view_at(v, from - 1) != '(' && !first)
        return false;
    return found(v, from, g->ends[first + 2], g, out);
}

/* 087 123 4567, 087 1234567, 01 234 5678, (01) 234 5678, (021) 427 1234. */
static bool irish(const struct view *v, size_t from, const struct groups *g, struct finds *out)
{
    bool mobile = g->sizes[0] == 3 && g->digits[1] == '8' && strchr("35679", g->digits[2]);
    bool bracket = g->gaps[0] == ')' && view_at(v, from - 1) == '(';
    size_t last = 0;

    if (g->sizes[0] < 2 || g->sizes[0] > 3 || g->digits[0] != '0' || g->digits[1] == '0')
        return false;
    if (!bracket && g->gaps[0] != ' ' && g->gaps[0] != '-')
        return false;
    if (sizes_are(g, 1, "34") && (bracket || g->gaps[1] == g->gaps[0]))
        last = 2;
    else if (sizes_are(g, 1, "7") && (bracket || mobile || g->sizes[0] == 2))
        last = 1;
    if (!last || !ends(v, g->ends[last]))
        return false;
    return found(v, from, g->ends[last], g, out);
}

static bool is_named(const struct view *v, size_t from)
{
    static const struct name names[] = {
        NAME("phone"),         NAME("telephone"),    NAME("tel"),       NAME("mobile"),
        NAME("fax"),           NAME("phone number"), NAME("phone no"),  NAME("phone_number"),
        NAME("mobile number"), NAME("mobile no"),    NAME("cellphone"), NAME("phonenumber"),
        NAME("tel no"),        NAME("whatsapp"),     NAME("call"),      {0}};

    return view_named(v, from, names);
}

/* Rules out most numbers: if a separator follows, the first two groups must have lengths that occur
 * in phone numbers. */
static bool may_be_one(const struct view *v, size_t from, size_t to)
{
    size_t len = to - from, at = to + 1;

    if (view_at(v, to) == ')' || view_at(v, at) == '(')
        return true;
    size_t next = view_span(v, at, CC_DIGIT, 8);
    if (v->p[from] == '0')
        return next == 3 || next == 7 || (len > 1 && next && v->p[from + 1] == '0');
    return next == 3 && (len == 3 || (len == 1 && v->p[from] == '1'));
}

bool number_phone(const struct view *v, size_t from, size_t to, struct finds *out)
{
    size_t len = to - from;
    int before = view_at(v, from - 1), after = view_at(v, to);
    struct groups g;

    if (len > 15)
        return false;
    if (before == '+') {
        if (!begins(v, from - 1) || v->p[from] == '0')
            return false;
        read_groups(v, from, &g);
        return international(v, from - 1, &g, 0, out);
    }
    bool gap = is_gap(after) || after == ')';
    if (!gap || len > 6)
        return len >= 7 && is_named(v, from) && ends(v, to) && found(v, from, to, NULL, out);
    int next = view_at(v, to + 1);
    if (!cc_is(next, CC_DIGIT) && after != ')' && next != '(')
        return false;
    bool named = is_named(v, from);
    if (!named && (!may_be_one(v, from, to) || !begins(v, from)))
        return false;
    read_groups(v, from, &g);
    if (american(v, from, &g, named, out) || irish(v, from, &g, out))
        return true;
    if (len >= 2 && v->p[from] == '0' && v->p[from + 1] == '0' && g.n > 1 &&
        international(v, from, &g, 2, out))
        return true;
    if (!named)
        return false;
    for (size_t i = g.n; i-- > 0;) {
        if (g.counts[i] >= 7 && g.counts[i] <= 15 && ends(v, g.ends[i]))
            return found(v, from, g.ends[i], &g, out);
    }
    return false;
}
