/* Judges numbers: cards, national numbers, accounts and addresses that begin with a digit. */

#include "lib/sanitise/impl.h"

/* Whether a number begins here and is not the rest of a longer one, as in 1.2.3 and 1-2-3. */
static bool number_begins(const struct view *v, size_t at)
{
    int c = view_at(v, at - 1);

    if (cc_is(c, CC_ALNUM) || c == '_')
        return false;
    return !((c == '-' || c == '.') && cc_is(view_at(v, at - 2), CC_ALNUM));
}

static bool number_ends(const struct view *v, size_t at)
{
    int c = view_at(v, at);

    if (cc_is(c, CC_ALNUM) || c == '_')
        return false;
    return !((c == '-' || c == '.') && cc_is(view_at(v, at + 1), CC_ALNUM));
}

static size_t run(const struct view *v, size_t at)
{
    return view_span(v, at, CC_DIGIT, 32);
}

/* Copies the digits of groups with `separator` between, if the groups have the lengths that `shape`
 * says, such as "4444". Returns where they end; 0 if they do not. */
static size_t groups(const struct view *v, size_t at, const char *shape, int separator, char *ret)
{
    for (const char *s = shape; *s; s++) {
        size_t want = (size_t)(*s - '0');
        if (run(v, at) != want)
            return 0;
        memcpy(ret, v->p + at, want);
        ret += want;
        at += want;
        if (s[1] && view_at(v, at++) != separator)
            return 0;
    }
    return at;
}

/* ---- cards ----------------------------------------------------------------------------------- */

bool number_card(const struct view *v, size_t from, size_t to, struct finds *out)
{
    static const char *const shapes[] = {"44443", "4444", "465", "464"};
    static const uint8_t lengths[] = {19, 16, 15, 14};
    char digits[32];
    int separator = view_at(v, to);

    if (to - from >= 12) {
        if (to - from > 19 || !number_begins(v, from) || !number_ends(v, to) ||
            !check_card((const char *)v->p + from, to - from))
            return false;
        number_add(v, from, to, KIND_CARD, out);
        return true;
    }
    /* Rules out dates: the next group must have at least four digits. */
    if ((separator != ' ' && separator != '-') || !cc_is(view_at(v, to + 3), CC_DIGIT) ||
        !cc_is(view_at(v, to + 4), CC_DIGIT))
        return false;
    for (size_t i = 0; i < ARRAY_SIZE(shapes); i++) {
        size_t end = groups(v, from, shapes[i], separator, digits);
        if (end && number_begins(v, from) && number_ends(v, end) &&
            check_card(digits, lengths[i])) {
            number_add(v, from, end, KIND_CARD, out);
            return true;
        }
    }
    return false;
}

/* ---- national numbers ------------------------------------------------------------------------ */

/* With dashes, the form is enough. With blanks or nothing between the digits, the text must call
 * the number one. */
bool number_ssn(const struct view *v, size_t from, size_t to, struct finds *out)
{
    static const struct name names[] = {NAME("ssn"),
                                        NAME("ssns"),
                                        NAME("social security number"),
                                        NAME("social security"),
                                        NAME("ssn number"),
                                        NAME("social_security_number"),
                                        {0}};
    char digits[16];
    int separator = view_at(v, to);
    size_t end = to;

    if (to - from == 9)
        memcpy(digits, v->p + from, 9);
    else if ((separator == '-' || separator == ' ') && view_at(v, to + 3) == separator)
        end = groups(v, from, "324", separator, digits);
    else
        return false;
    if (!end || !number_begins(v, from) || !number_ends(v, end) || !check_ssn(digits))
        return false;
    if (view_at(v, from - 1) == '/' || view_at(v, end) == '/')
        return false;
    if (to - from == 9 && separator == '-')
        return false;
    if (separator != '-' && !view_named(v, from, names))
        return false;
    number_add(v, from, end, KIND_SSN, out);
    return true;
}

bool number_ppsn(const struct view *v, size_t from, size_t to, struct finds *out)
{
    static const struct name names[] = {NAME("ppsn"),       NAME("pps"),         NAME("pps no"),
                                        NAME("pps number"), NAME("ppsn number"), {0}};
    char letter = (char)view_at(v, to), second = 0;
    size_t end = to + 1;

    if (cc_is(view_at(v, end), CC_ALPHA))
        second = (char)view_at(v, end++);
    if (!number_begins(v, from) || !number_ends(v, end))
        return false;
    if (!cc_is(letter, CC_UPPER) && !view_named(v, from, names))
        return false;
    /* A letter in lower case has bit 5 set. */
    if (!check_ppsn((const char *)v->p + from, letter & 0x5f, second & 0x5f))
        return false;
    number_add(v, from, end, KIND_PPSN, out);
    return true;
}

/* ---- accounts -------------------------------------------------------------------------------- */

/* Two capitals, two digits, and the rest in one piece or in groups of four. */
bool number_iban(const struct view *v, size_t from, size_t to UNUSED, struct finds *out)
{
    char text[40];
    size_t n = 0, at = from - 2;
    int gap = view_at(v, from + 2);

    if (from < 2 || !cc_is(view_at(v, at), CC_UPPER) || !view_word_begins(v, at))
        return false;
    size_t want = check_iban_length((const char *)v->p + at);
    if (!want || (gap != ' ' && gap != '-'))
        gap = -1;
    while (n < want) {
        int c = view_at(v, at);
        if (gap >= 0 && n && n % 4 == 0 && c == gap)
            c = view_at(v, ++at);
        if (!cc_is(c, CC_UPPER | CC_DIGIT))
            return false;
        text[n++] = (char)c;
        at++;
    }
    if (!want || !view_word_ends(v, at) || !check_iban(text, n))
        return false;
    number_add(v, from - 2, at, KIND_IBAN, out);
    return true;
}

/* ---- addresses ------------------------------------------------------------------------------- */

/* Addresses that belong to nobody: this host, no host, all hosts, and masks. */
static bool nobodys(const unsigned octets[4])
{
    return octets[0] == 127 || octets[0] == 0 || octets[0] == 255;
}

/* Version numbers look like addresses. The text before them tells: v1.2.3.4, nginx-1.2.3.4,
 * Chrome/1.2.3.4, ==1.2.3.4, version 1.2.3.4; or the text after: 1.2.3.4-beta, 1.2.3.4 release. */
static bool is_version(const struct view *v, size_t from, size_t end)
{
    static const struct name names[] = {NAME("version"),
                                        NAME("ver"),
                                        NAME("release"),
                                        NAME("revision"),
                                        NAME("build"),
                                        NAME("rev"),
                                        NAME("section"),
                                        NAME("firmware"),
                                        NAME("versions"),
                                        NAME("oid"),
                                        {0}};
    int before = view_at(v, from - 1), two = view_at(v, from - 2);

    if (cc_is(before, CC_ALPHA) || before == '_' || before == '.')
        return true;
    if ((before == '-' || before == '/') && cc_is(two, CC_ALPHA))
        return true;
    size_t at = from;
    while (from - at < 2 && view_at(v, at - 1) == ' ')
        at--;
    int sign = view_at(v, at - 1), first = view_at(v, at - 2);
    if (sign == '~' || sign == '^')
        return true;
    if (sign == '=' && first > 0 && strchr("=<>~!", first))
        return true;
    if (view_has(v, end, " release"))
        return true;
    return view_named(v, from, names) ||
           (view_at(v, end) == '-' && cc_is(view_at(v, end + 1), CC_ALPHA));
}

bool number_ipv4(const struct view *v, size_t from, size_t to UNUSED, struct finds *out)
{
    unsigned octets[4];
    size_t at = from;

    for (size_t i = 0; i < 4; i++) {
        size_t len = run(v, at);
        if (len < 1 || len > 3 || (len > 1 && v->p[at] == '0'))
            return false;
        octets[i] = 0;
        for (size_t k = 0; k < len; k++)
            octets[i] = octets[i] * 10 + (unsigned)(v->p[at + k] - '0');
        at += len;
        if (octets[i] > 255 || (i < 3 && view_at(v, at++) != '.'))
            return false;
    }
    int next = view_at(v, at), two = view_at(v, at + 1);
    if (cc_is(next, CC_ALNUM) || next == '_' || (next == '.' && cc_is(two, CC_ALNUM)))
        return false;
    int before = view_at(v, from - 1);
    if (before == '.' || (before == ':' && view_at(v, from - 2) == ':') || nobodys(octets) ||
        is_version(v, from, at))
        return false;
    number_add(v, from, at, KIND_IP_ADDRESS, out);
    return true;
}

/* ---- keys of bots ---------------------------------------------------------------------------- */

/* Telegram's keys: the bot's number, a colon and 35 characters. */
bool number_bot_key(const struct view *v, size_t from, size_t to, struct finds *out)
{
    if (!view_word_begins(v, from) || !view_has(v, to + 1, "aa") ||
        view_span(v, to + 1, CC_TOKEN, 40) != 35)
        return false;
    number_add(v, from, to + 36, KIND_API_KEY, out);
    return true;
}
