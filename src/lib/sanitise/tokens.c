/* Finds keys: those that are known by their prefix, and those that the text calls keys. */

#include "lib/text/base64.h"
#include "lib/sanitise/impl.h"

#define CC_BEARER (CC_TOKEN | CC_DOT | CC_B64 | CC_TILDE)
#define CC_PATH   (CC_TOKEN | CC_SLASH)

const struct token_form token_forms[] = {
    /* language models */
    {"sk-", CC_TOKEN, 32, NEEDS_MIXED},
    {"sk-ant-", CC_TOKEN, 20, NEEDS_DIGIT},
    {"sk-proj-", CC_TOKEN, 20, NEEDS_DIGIT},
    {"sk-svcacct-", CC_TOKEN, 20, NEEDS_DIGIT},
    {"sk-or-v1-", CC_HEX, 32, 0},
    {"sk-lf-", CC_TOKEN, 32, NEEDS_DIGIT},
    {"gsk_", CC_ALNUM, 40, NEEDS_DIGIT},
    {"xai-", CC_ALNUM, 60, NEEDS_DIGIT},
    {"pplx-", CC_ALNUM, 32, NEEDS_DIGIT},
    {"hf_", CC_ALNUM, 30, NEEDS_MIXED},
    {"r8_", CC_ALNUM, 36, NEEDS_MIXED},
    {"nvapi-", CC_TOKEN, 40, NEEDS_DIGIT},
    {"tvly-", CC_TOKEN, 24, NEEDS_DIGIT},
    /* code and packages */
    {"ghp_", CC_ALNUM, 36, 0},
    {"gho_", CC_ALNUM, 36, 0},
    {"ghu_", CC_ALNUM, 36, 0},
    {"ghs_", CC_TOKEN | CC_DOT, 36, 0},
    {"ghr_", CC_ALNUM, 36, 0},
    {"github_pat_", CC_ALNUM | CC_DASH, 22, NEEDS_DIGIT},
    {"glpat-", CC_TOKEN | CC_DOT, 20, 0},
    {"gldt-", CC_TOKEN, 20, NEEDS_DIGIT},
    {"glrt-", CC_TOKEN | CC_DOT, 20, NEEDS_DIGIT},
    {"glptt-", CC_TOKEN, 40, 0},
    {"npm_", CC_ALNUM, 36, NEEDS_MIXED},
    {"pypi-AgE", CC_TOKEN, 50, 0},
    {"dckr_pat_", CC_TOKEN, 20, NEEDS_DIGIT},
    {"ATATT3", CC_TOKEN | CC_B64, 60, 0},
    {"lin_api_", CC_ALNUM, 32, 0},
    {"figd_", CC_TOKEN, 30, NEEDS_DIGIT},
    {"ntn_", CC_ALNUM, 40, NEEDS_DIGIT},
    {"PMAK-", CC_TOKEN, 50, 0},
    /* chat and mail */
    {"xoxa-", CC_TOKEN, 10, NEEDS_DIGIT},
    {"xoxb-", CC_TOKEN, 10, NEEDS_DIGIT},
    {"xoxe-", CC_TOKEN, 10, NEEDS_DIGIT},
    {"xoxe.xox", CC_TOKEN, 20, NEEDS_DIGIT},
    {"xoxp-", CC_TOKEN, 10, NEEDS_DIGIT},
    {"xoxr-", CC_TOKEN, 10, NEEDS_DIGIT},
    {"xoxs-", CC_TOKEN, 10, NEEDS_DIGIT},
    {"xapp-", CC_TOKEN, 20, NEEDS_DIGIT},
    {"hooks.slack.com/services/", CC_PATH, 20, NEEDS_DIGIT},
    {"hooks.slack.com/workflows/", CC_PATH, 20, NEEDS_DIGIT},
    {"discord.com/api/webhooks/", CC_PATH, 60, 0},
    {"discordapp.com/api/webhooks/", CC_PATH, 60, 0},
    {"SG.", CC_TOKEN | CC_DOT, 40, NEEDS_DIGIT | NEEDS_DOT},
    {"key-", CC_HEX, 32, NEEDS_DIGIT},
    /* payment and shops */
    {"sk_live_", CC_ALNUM, 16, 0},
    {"rk_live_", CC_ALNUM, 16, 0},
    {"sk_test_", CC_ALNUM, 16, 0},
    {"rk_test_", CC_ALNUM, 16, 0},
    {"whsec_", CC_ALNUM | CC_B64, 24, NEEDS_DIGIT},
    {"shpat_", CC_HEX, 32, 0},
    {"shpca_", CC_HEX, 32, 0},
    {"shppa_", CC_HEX, 32, 0},
    {"shpss_", CC_HEX, 32, 0},
    {"sq0atp-", CC_TOKEN, 22, 0},
    {"sq0csp-", CC_TOKEN, 40, 0},
    /* clouds */
    {"AIza", CC_TOKEN, 35, 0},
    {"ya29.", CC_TOKEN | CC_DOT, 20, NEEDS_DIGIT},
    {"GOCSPX-", CC_TOKEN, 28, 0},
    {"dop_v1_", CC_HEX, 64, 0},
    {"doo_v1_", CC_HEX, 64, 0},
    {"dor_v1_", CC_HEX, 64, 0},
    {"dapi", CC_HEX, 32, NEEDS_DIGIT},
    {"hvs.", CC_TOKEN, 24, NEEDS_DIGIT},
    {"hvb.", CC_TOKEN, 24, NEEDS_DIGIT},
    {"dp.pt.", CC_ALNUM, 40, 0},
    {"dp.st.", CC_TOKEN | CC_DOT, 40, 0},
    {"glsa_", CC_TOKEN, 32, NEEDS_DIGIT},
    {"glc_eyJ", CC_ALNUM | CC_B64, 32, 0},
    {"sntrys_eyJ", CC_TOKEN | CC_B64, 32, 0},
    {"NRAK-", CC_ALNUM, 27, 0},
    {"pul-", CC_HEX, 40, 0},
    {"sbp_", CC_HEX, 40, 0},
    {"sb_secret_", CC_TOKEN, 20, NEEDS_DIGIT},
    {"e2b_", CC_HEX, 40, 0},
    {"sk_e2b_", CC_HEX, 40, 0},
    {"admin_e2b_", CC_HEX, 40, 0},
};
const size_t token_forms_n = ARRAY_SIZE(token_forms);

static bool satisfies(const struct view *v, size_t from, size_t len, unsigned needs)
{
    bool digit = false, upper = false, lower = false, hex = true, dot = false;

    for (size_t i = from; i < from + len; i++) {
        int c = view_at(v, i);
        digit = digit || cc_is(c, CC_DIGIT);
        upper = upper || cc_is(c, CC_UPPER);
        lower = lower || cc_is(c, CC_LOWER);
        hex = hex && cc_is(c, CC_HEX);
        dot = dot || c == '.';
    }
    if ((needs & NEEDS_DIGIT) && !digit)
        return false;
    if ((needs & NEEDS_MIXED) && !(digit && ((upper && lower) || hex)))
        return false;
    return !(needs & NEEDS_DOT) || dot;
}

/* A key is swallowed to its end, whatever its length. */
static void add_key(size_t start, size_t end, enum sanitise_kind kind, unsigned classes,
                    struct finds *out)
{
    uint8_t tail = TAIL_TOKEN;

    if (classes & CC_DOT)
        tail = TAIL_DOTTED;
    else if (classes & (CC_B64 | CC_SLASH))
        tail = TAIL_BASE64;
    find_add(out, start, end, kind, tail);
}

void spot_token(const struct view *v, size_t to, const struct token_form *form, struct finds *out)
{
    size_t start = to - strlen(form->prefix);

    /* Not in the middle of words with hyphens either, of which there may be very many. */
    if (!view_word_begins(v, start) ||
        (view_at(v, start - 1) == '-' && cc_is(view_at(v, start - 2), CC_TOKEN)))
        return;
    size_t len = view_span(v, to, form->classes, AHEAD - 64);
    if (len < form->min || !satisfies(v, to, len, form->needs))
        return;
    add_key(start, to + len, KIND_API_KEY, form->classes, out);
}

/* ---- what the text calls so ------------------------------------------------------------------ */

/* Skips the signs between a name and its value. */
static size_t value_begins(const struct view *v, size_t at, size_t max)
{
    while (max-- && cc_is(view_at(v, at), CC_SIGN | CC_COMMA))
        at++;
    return at;
}

static size_t blanks(const struct view *v, size_t at)
{
    size_t n = 0;

    while (n < 4 && (view_at(v, at + n) == ' ' || view_at(v, at + n) == '\t'))
        n++;
    return n;
}

void spot_bearer(const struct view *v, size_t to, struct finds *out)
{
    size_t from = to + blanks(v, to);
    size_t len = view_span(v, from, CC_BEARER, AHEAD - 64);

    if (len >= 20 && satisfies(v, from, len, NEEDS_DIGIT))
        add_key(from, from + len, KIND_API_KEY, CC_BEARER, out);
}

/* user:password in base64. Plain words are none, because they decode to bytes that are no text. */
void spot_basic(const struct view *v, size_t to, struct finds *out)
{
    size_t from = to + blanks(v, to);
    size_t len = view_span(v, from, CC_ALNUM | CC_B64, 256);
    AUTO(strbuf_done) struct strbuf text = strbuf_upto(256);

    if (len < 8 || len % 4 || base64_decode(&text, (const char *)v->p + from, len) < 0)
        return;
    for (size_t i = 0; i < text.len; i++) {
        if (text.buf[i] < ' ' || text.buf[i] > '~')
            return;
    }
    if (strchr(text.buf, ':'))
        add_key(from, from + len, KIND_API_KEY, CC_B64, out);
}

/* api_key = "...": at least 20 characters that do not look like a name that a program or person
 * would give. */
void spot_named_key(const struct view *v, size_t to, struct finds *out)
{
    size_t from = value_begins(v, to, 8), digits = 0;
    bool given = false;

    for (size_t i = to; i < from; i++)
        given = given || v->p[i] == ':' || v->p[i] == '=';
    if (!given)
        return;
    size_t len = view_span(v, from, CC_TOKEN | CC_DOT, AHEAD - 64);
    int after = view_at(v, from + len);
    for (size_t i = from; i < from + len; i++)
        digits += cc_is(view_at(v, i), CC_DIGIT);
    if (len < 20 || digits < 3 || after == '(' || after == '[')
        return;
    add_key(from, from + len, KIND_API_KEY, CC_TOKEN | CC_DOT, out);
}

/* ---- Amazon ---------------------------------------------------------------------------------- */

#define CC_SECRET (CC_ALNUM | CC_B64)

static void aws_secret_at(const struct view *v, size_t from, struct finds *out)
{
    if (view_span(v, from, CC_SECRET, 48) == 40 && satisfies(v, from, 40, NEEDS_DIGIT))
        add_key(from, from + 40, KIND_AWS_KEY, CC_B64, out);
}

void spot_aws_id(const struct view *v, size_t to, struct finds *out)
{
    size_t start = to - 4, end = to;

    while (end < to + 16 &&
           (cc_is(view_at(v, end), CC_UPPER) || (view_at(v, end) >= '2' && view_at(v, end) <= '7')))
        end++;
    if (end < to + 16 || !view_word_begins(v, start) || !view_word_ends(v, end))
        return;
    find_add(out, start, end, KIND_AWS_KEY, TAIL_NONE);
    /* The secret often follows its id. */
    aws_secret_at(v, value_begins(v, end, 4), out);
}

/* Called after access_key_id too, which does no harm: an id is not 40 characters long. */
void spot_aws_secret(const struct view *v, size_t to, struct finds *out)
{
    aws_secret_at(v, value_begins(v, to, 8), out);
}

void spot_aws_session(const struct view *v, size_t to, struct finds *out)
{
    size_t from = value_begins(v, to, 8);
    size_t len = view_span(v, from, CC_SECRET, AHEAD - 64);

    if (len >= 100 && satisfies(v, from, len, NEEDS_DIGIT))
        add_key(from, from + len, KIND_AWS_KEY, CC_B64, out);
}
