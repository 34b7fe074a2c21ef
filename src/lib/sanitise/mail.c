/* E-mail addresses, found by their @. */

#include "lib/sanitise/impl.h"

#define LOCAL_MAX  64
#define DOMAIN_MAX 255
#define CC_LOCAL   (CC_TOKEN | CC_DOT | CC_MAIL)

/* Words that often follow an @ and a dot but are no top-level domains: the ends of file names such
 * as icon@2x.png, and attributes after Python's operator @. */
static const char *const not_domains[] = {
    "png",  "jpg",  "jpeg", "gif",    "svg",     "webp",  "css",       "js",      "jsx",   "ts",
    "tsx",  "json", "html", "xml",    "yml",     "yaml",  "txt",       "map",     "mjs",   "cjs",
    "toml", "lock", "tgz",  "gz",     "bmp",     "ico",   "pdf",       "service", "shape", "dtype",
    "mean", "sum",  "size", "astype", "reshape", "ravel", "transpose", "flatten", "conj",  "tolist",
};

static size_t local_begins(const struct view *v, size_t at)
{
    size_t i = at;

    while (at - i < LOCAL_MAX && cc_is(view_at(v, i - 1), CC_LOCAL))
        i--;
    /* Quotation marks and dashes of Unicode do not belong to the address. */
    for (size_t k = i; k < at; k++) {
        if (v->p[k] == 0xe2)
            i = k + 3;
    }
    while (i < at && !cc_is(v->p[i], CC_ALNUM) && v->p[i] != '_' && v->p[i] < 0x80)
        i++;
    return i;
}

/* Where the domain ends; 0 if no mail could go to it. */
static size_t domain_ends(const struct view *v, size_t at)
{
    size_t end = at, last = at;
    bool dot = false;

    if (!cc_is(view_at(v, at), CC_ALNUM) && view_at(v, at) < 0x80)
        return 0;
    while (end - at < DOMAIN_MAX) {
        int c = view_at(v, end);
        if (c == '.' && (cc_is(view_at(v, end + 1), CC_ALNUM) || view_at(v, end + 1) >= 0x80)) {
            dot = true;
            last = end + 1;
        } else if (!cc_is(c, CC_ALNUM) && c != '-' && (c < 0x80 || c == 0xe2)) {
            break;
        }
        end++;
    }
    while (end > last && v->p[end - 1] == '-')
        end--;
    if (!dot || end - last < 2 || end - last > 24 || view_at(v, end) == '(')
        return 0;
    if (view_span(v, last, CC_ALPHA | CC_MAIL, end - last) != end - last &&
        !view_has(v, last, "xn--"))
        return 0;
    for (size_t i = 0; i < ARRAY_SIZE(not_domains); i++) {
        if (strlen(not_domains[i]) == end - last && view_has(v, last, not_domains[i]))
            return 0;
    }
    return end;
}

/* Whether this is the user, or the password, of a URL. */
static bool in_url(const struct view *v, size_t at)
{
    size_t i = at;

    if (view_at(v, i - 1) == ':')
        i--;
    while (i < at && at - i < BACK / 2 && cc_is(view_at(v, i - 1), CC_LOCAL))
        i--;
    return i >= 2 && v->p[i - 1] == '/' && v->p[i - 2] == '/';
}

/* Looks for an address around an @. at: the place of the sign, which is `width` characters wide. */
static void mail_around(const struct view *v, size_t at, size_t width, struct finds *out)
{
    size_t start = local_begins(v, at), end = start < at ? domain_ends(v, at + width) : 0;

    if (!end)
        return;
    /* Neither the user of a URL nor git@host:path is a person's address. */
    if (in_url(v, start))
        return;
    int after = view_at(v, end + 1);
    if (at - start == 3 && view_has(v, start, "git") && view_at(v, end) == ':' &&
        (cc_is(after, CC_TOKEN) || after == '~' || after == '/'))
        return;
    find_add(out, start, end, KIND_EMAIL, TAIL_NONE);
}

void spot_mail(const struct view *v, size_t to, struct finds *out)
{
    mail_around(v, to - 1, 1, out);
}

/* The @ as %40, as in the query of a URL. */
void spot_mail_percent(const struct view *v, size_t to, struct finds *out)
{
    mail_around(v, to - 3, 3, out);
}
