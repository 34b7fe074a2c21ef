/* The table of patterns: words that are a sign of something to remove. Vectorscan finds the words;
 * the `spot` function of each then decides whether there is something, and where it begins and
 * ends.
 *
 * Patterns are words and not expressions, because vectorscan's older versions (5.4.9) lose matches
 * of expressions: of [a-z]@[a-z], one in sixty, depending on how the text lies in memory. Words are
 * found exactly and four times as fast, and compile at once. */

#include "lib/sanitise/impl.h"

#define ANY HS_FLAG_CASELESS

static const struct {
    const char *word;
    unsigned flags;
    spot spot;
} patterns[] = {
    {"@", 0, spot_mail},
    {"%40", 0, spot_mail_percent},
    {"://", 0, spot_url},
    {"eyJ", 0, spot_jwt},
    {"AKIA", 0, spot_aws_id},
    {"ASIA", 0, spot_aws_id},
    {"access_key", ANY, spot_aws_secret},
    {"accesskey", ANY, spot_aws_secret},
    {"access-key", ANY, spot_aws_secret},
    {"access key", ANY, spot_aws_secret},
    {"aws_secret", ANY, spot_aws_secret},
    {"session_token", ANY, spot_aws_session},
    {"sessiontoken", ANY, spot_aws_session},
    {"session-token", ANY, spot_aws_session},
    {"bearer ", ANY, spot_bearer},
    {"basic ", ANY, spot_basic},
    {"api_key", ANY, spot_named_key},
    {"api-key", ANY, spot_named_key},
    {"apikey", ANY, spot_named_key},
    {"secret_key", ANY, spot_named_key},
    {"secret-key", ANY, spot_named_key},
    {"secretkey", ANY, spot_named_key},
    {"client_secret", ANY, spot_named_key},
    {"clientsecret", ANY, spot_named_key},
    {"access_token", ANY, spot_named_key},
    {"accesstoken", ANY, spot_named_key},
    {"auth_token", ANY, spot_named_key},
    {"authtoken", ANY, spot_named_key},
    {"refresh_token", ANY, spot_named_key},
    {"PRIVATE KEY-----", 0, spot_pem},
    {"PRIVATE KEY BLOCK-----", 0, spot_pem},
};

#define PATTERNS_N ARRAY_SIZE(patterns)
#define TOKENS_MAX 128

static const char *const kind_names[KIND_CUSTOM] = {
    [KIND_EMAIL] = "email",
    [KIND_PHONE] = "phone",
    [KIND_SSN] = "ssn",
    [KIND_PPSN] = "ppsn",
    [KIND_CARD] = "card",
    [KIND_IBAN] = "iban",
    [KIND_API_KEY] = "api_key",
    [KIND_JWT] = "jwt",
    [KIND_AWS_KEY] = "aws_key",
    [KIND_PRIVATE_KEY] = "private_key",
    [KIND_DATABASE_URL] = "database_url",
    [KIND_IP_ADDRESS] = "ip_address",
};

const char *builtin_name(unsigned kind)
{
    return kind < KIND_CUSTOM ? kind_names[kind] : NULL;
}

int patterns_compile(hs_database_t **ret, struct sg_error *e)
{
    const char *words[PATTERNS_N + TOKENS_MAX];
    unsigned flags[PATTERNS_N + TOKENS_MAX] = {0}, ids[PATTERNS_N + TOKENS_MAX], n = 0;
    size_t lengths[PATTERNS_N + TOKENS_MAX];
    hs_compile_error_t *error = NULL;

    for (; n < PATTERNS_N + token_forms_n && n < ARRAY_SIZE(words); n++) {
        words[n] = n < PATTERNS_N ? patterns[n].word : token_forms[n - PATTERNS_N].prefix;
        flags[n] = n < PATTERNS_N ? patterns[n].flags : 0;
        lengths[n] = strlen(words[n]);
        ids[n] = n;
    }
    if (hs_compile_lit_multi(words, flags, ids, lengths, n, HS_MODE_BLOCK, NULL, ret, &error) ==
        HS_SUCCESS)
        return 0;
    err_set(e, SG_ERR_INTERNAL, -EIO, "sanitiser: compile pattern %d: %s",
            error ? error->expression : -1, error ? error->message : "no memory");
    hs_free_compile_error(error);
    return -EIO;
}

struct scan {
    const struct view *v;
    struct finds *out;
};

static int on_match(unsigned id, unsigned long long from UNUSED, unsigned long long to,
                    unsigned flags UNUSED, void *arg)
{
    struct scan *s = arg;

    if (id < PATTERNS_N)
        patterns[id].spot(s->v, (size_t)to, s->out);
    else
        spot_token(s->v, (size_t)to, &token_forms[id - PATTERNS_N], s->out);
    return 0;
}

void patterns_scan(struct sanitiser *s, const struct view *v, struct finds *out)
{
    struct scan scan = {v, out};

    hs_scan(s->db, (const char *)v->p, (unsigned)v->n, 0, s->scratch, on_match, &scan);
    numbers_scan(v, out);
}
