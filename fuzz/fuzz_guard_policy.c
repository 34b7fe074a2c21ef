/* The tree of networks and the table of names against a search that reads the lists from one end to
 * the other. Lines of the input: the first is the default ("d": deny), then "+entry" (allow),
 * "-entry" (deny), "?address", "?name" and "?name@address", which are judged. */
#include <arpa/inet.h>
#include <assert.h>
#include <string.h>
#include <strings.h>

#include "lib/text/json.h"
#include "guard/policy.h"

#define LINES_MAX 300
#define LINE_MAX  280

/* ---- the slow one ---------------------------------------------------------------------------- */

/* An entry, or an address, which is an entry with its whole length. */
struct slow {
    enum { SLOW_BAD, SLOW_NETWORK, SLOW_NAME } kind;
    bool deny, v4, below;
    int len;
    uint8_t bits[128]; /* one to a byte: nothing to get wrong */
    char name[LINE_MAX];
};

struct lists {
    bool default_deny;
    size_t n;
    struct slow v[LINES_MAX];
};

static bool slow_network(const char *text, struct slow *ret)
{
    const char *slash = strchr(text, '/');
    char address[LINE_MAX];
    uint8_t ip[16];
    int max;

    snprintf(address, sizeof(address), "%.*s", (int)strcspn(text, "/"), text);
    max = inet_pton(AF_INET, address, ip) == 1    ? 32
          : inet_pton(AF_INET6, address, ip) == 1 ? 128
                                                  : 0;
    for (int i = 0; i < max; i++)
        ret->bits[i] = ip[i / 8] >> (7 - i % 8) & 1;
    ret->len = max;
    ret->v4 = max == 32;
    if (slash &&
        (strlen(slash + 1) > 3 || slash[1] < '0' || slash[1] > '9' ||
         (slash[1] == '0' && slash[2]) || strspn(slash + 1, "0123456789") != strlen(slash + 1)))
        return false;
    if (slash)
        ret->len = (int)strtol(slash + 1, NULL, 10);
    if (max == 0 || ret->len > max)
        return false;
    bool mapped = max == 128 && ret->len >= 96;
    for (int i = 0; mapped && i < 96; i++)
        mapped = ret->bits[i] == (i >= 80);
    if (mapped) {
        memmove(ret->bits, ret->bits + 96, 32);
        ret->len -= 96;
        ret->v4 = true;
    }
    return true;
}

static bool slow_label(const char *s, size_t len)
{
    for (size_t i = 0; i < len; i++)
        if (!strchr("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_", s[i]))
            return false;
    return len > 0 && len < 64;
}

static bool slow_name(const char *text, struct slow *ret)
{
    size_t len = strlen(text);
    const char *label;

    if (len > 0 && text[len - 1] == '.')
        len--;
    if (len + (ret->below ? 2 : 0) > 253)
        return false;
    snprintf(ret->name, sizeof(ret->name), "%.*s", (int)len, text);
    for (label = ret->name;; label += strcspn(label, ".") + 1) {
        if (!slow_label(label, strcspn(label, ".")))
            return false;
        if (!strchr(label, '.'))
            break;
    }
    if (strncasecmp(label, "0x", 2) == 0)
        return strspn(label + 2, "0123456789abcdefABCDEF") != strlen(label + 2);
    return strspn(label, "0123456789") != strlen(label);
}

static void slow_parse(const char *text, struct slow *ret)
{
    *ret = (struct slow){0};
    if (slow_network(text, ret)) {
        ret->kind = SLOW_NETWORK;
        return;
    }
    ret->below = strncmp(text, "*.", 2) == 0;
    if (slow_name(text + (ret->below ? 2 : 0), ret))
        ret->kind = SLOW_NAME;
}

static bool slow_matches(const struct slow *e, const struct slow *asked)
{
    size_t n = strlen(asked->name), m = strlen(e->name);

    if (e->kind == SLOW_NETWORK && e->v4 && e->len == 0)
        return true;
    if (e->kind != asked->kind)
        return false;
    if (e->kind == SLOW_NETWORK)
        return e->v4 == asked->v4 && memcmp(e->bits, asked->bits, (size_t)e->len) == 0;
    if (e->below)
        return n > m && asked->name[n - m - 1] == '.' &&
               strcasecmp(asked->name + n - m, e->name) == 0;
    return strcasecmp(asked->name, e->name) == 0;
}

static bool slow_has(const struct lists *l, bool deny, const struct slow *asked)
{
    for (size_t i = 0; i < l->n; i++)
        if (l->v[i].deny == deny && slow_matches(&l->v[i], asked))
            return true;
    return false;
}

static bool slow_has_names(const struct lists *l, bool deny)
{
    for (size_t i = 0; i < l->n; i++)
        if (l->v[i].deny == deny && l->v[i].kind == SLOW_NAME)
            return true;
    return false;
}

/* Whether it may go; *ret_entry: because of an entry of allow. */
static bool slow_address(const struct lists *l, const struct slow *asked,
                         const struct slow *carried, bool *ret_entry)
{
    bool ignored;

    *ret_entry = false;
    if (carried && !slow_address(l, carried, NULL, &ignored))
        return false;
    *ret_entry = slow_has(l, false, asked);
    return *ret_entry || (!slow_has(l, true, asked) && !l->default_deny);
}

/* ---- both ------------------------------------------------------------------------------------ */

static void check_rule(const struct judgement *j)
{
    assert(j->rule && j->rule[0]);
    assert((j->verdict == VERDICT_ALLOW) ==
           (strncmp(j->rule, "allow ", 6) == 0 || strcmp(j->rule, "default allow") == 0));
}

static bool parse_address(const char *text, struct net_addr *a, struct slow *s,
                          struct slow *carried, bool *ret_carries)
{
    char inner[NET_ADDR_TEXT_MAX];
    struct net_addr c;

    slow_parse(text, s);
    if (net_addr_parse(text, a) < 0) {
        assert(s->kind != SLOW_NETWORK || strchr(text, '/'));
        return false;
    }
    assert(s->kind == SLOW_NETWORK);
    *ret_carries = net_addr_carried(a, &c);
    if (*ret_carries) {
        net_addr_text(&c, inner);
        slow_parse(inner, carried);
    }
    return true;
}

static void judge_address(const struct policy *p, const struct lists *l, const char *text)
{
    struct slow s, carried;
    struct judgement j, fallback;
    struct net_addr a;
    bool carries, entry, may, waits;

    if (!parse_address(text, &a, &s, &carried, &carries))
        return;
    policy_judge_address(p, &a, &j, &fallback);
    may = slow_address(l, &s, carries ? &carried : NULL, &entry);
    assert(fallback.verdict == (may ? VERDICT_ALLOW : VERDICT_DENY));
    waits = may ? !entry && slow_has_names(l, true) : slow_has_names(l, false);
    assert(j.verdict == (waits ? VERDICT_NAME : fallback.verdict));
    check_rule(&fallback);
}

static void judge_name(const struct policy *p, const struct lists *l, const char *text,
                       const char *address)
{
    char name[POLICY_NAME_MAX + 1];
    struct slow s, at, carried;
    struct net_addr a;
    struct judgement j;
    bool carries = false, entry = false, may = !l->default_deny;

    slow_parse(text, &s);
    if (name_normalise(text, strlen(text), name) < 0) {
        assert(s.kind != SLOW_NAME || s.below);
        return;
    }
    assert(s.kind == SLOW_NAME && !s.below && strcasecmp(s.name, name) == 0);
    if (address && !parse_address(address, &a, &at, &carried, &carries))
        return;
    if (address)
        may = slow_address(l, &at, carries ? &carried : NULL, &entry);
    if (!entry)
        may = slow_has(l, false, &s) || (!slow_has(l, true, &s) && may);
    policy_judge_name(p, name, address ? &a : NULL, &j);
    assert(j.verdict == (may ? VERDICT_ALLOW : VERDICT_DENY));
    check_rule(&j);
    policy_judge_name(p, name, NULL, &j);
    assert(address || j.verdict == (may ? VERDICT_ALLOW : VERDICT_DENY));
}

static void print_list(struct json *w, const char *key, char kind, char (*lines)[LINE_MAX],
                       size_t n)
{
    jw_key(w, key);
    jw_array_begin(w);
    for (size_t i = 0; i < n; i++)
        if (lines[i][0] == kind)
            jw_string(w, lines[i] + 1);
    jw_array_end(w);
}

/* Whether every entry is one. */
static bool read_lists(char (*lines)[LINE_MAX], size_t n, struct lists *l)
{
    bool good = true;

    l->n = 0;
    for (size_t i = 0; i < n; i++) {
        if (lines[i][0] != '+' && lines[i][0] != '-')
            continue;
        slow_parse(lines[i] + 1, &l->v[l->n]);
        l->v[l->n].deny = lines[i][0] == '-';
        good = good && l->v[l->n++].kind != SLOW_BAD && strlen(lines[i] + 1) <= 253;
    }
    return good;
}

/* Printable lines that are not longer than room; others are left out. */
static size_t split(const uint8_t *data, size_t len, char (*lines)[LINE_MAX])
{
    size_t n = 0, at = 0;

    for (size_t i = 0; i < len && n < LINES_MAX; i++) {
        if (data[i] == '\n') {
            lines[n++][at] = '\0';
            at = 0;
        } else if (data[i] > ' ' && data[i] < 0x7f && at + 1 < LINE_MAX) {
            lines[n][at++] = (char)data[i];
        }
    }
    return n;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    static char lines[LINES_MAX][LINE_MAX];
    static struct lists l;
    AUTO(strbuf_done) struct strbuf document = {0};
    struct policy *p = NULL;
    struct sg_error e = {0};
    struct json w;
    size_t n = split(data, len, lines);
    bool good = read_lists(lines, n, &l);

    strbuf_init(&document, 1024 * 1024);
    l.default_deny = n > 0 && lines[0][0] == 'd';
    jw_init(&w, &document);
    jw_object_begin(&w);
    jw_key(&w, "default");
    jw_string(&w, l.default_deny ? "deny" : "allow");
    print_list(&w, "allow", '+', lines, n);
    print_list(&w, "deny", '-', lines, n);
    jw_object_end(&w);
    int r = policy_parse(document.buf, document.len, NULL, &p, &e);
    assert((r == 0) == good && (r == 0 || (e.code == r && e.message[0])));
    for (size_t i = 0; r == 0 && i < n; i++) {
        char *at = strchr(lines[i], '@');

        if (lines[i][0] != '?')
            continue;
        if (at)
            *at++ = '\0';
        else
            judge_address(p, &l, lines[i] + 1);
        judge_name(p, &l, lines[i] + 1, at);
    }
    policy_unref(p);
    return 0;
}
