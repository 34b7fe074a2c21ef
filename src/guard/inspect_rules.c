#include "guard/inspect_rules.h"

#include <strings.h>

#include "guard/identity.h"
#include "lib/log/log.h"
#include "lib/text/base64.h"

#define SECRET_MARK "${e2b.secrets."
#define TOKEN_MARK  "${e2b.identity.tokens."
#define BASIC       (16u * 1024) /* bytes of user and password, decoded */
#define BAD_RULE    502

bool rules_mention(const char *value, struct rules_mention *ret)
{
    for (const char *at = value; (at = strchr(at, '$')); at++) {
        bool token = strncmp(at, TOKEN_MARK, strlen(TOKEN_MARK)) == 0;
        const char *name, *close;

        if (!token && strncmp(at, SECRET_MARK, strlen(SECRET_MARK)) != 0)
            continue;
        name = at + strlen(token ? TOKEN_MARK : SECRET_MARK);
        close = strchr(name, '}');
        if (!close)
            return false;
        *ret = (struct rules_mention){.at = at,
                                      .name = name,
                                      .len = (size_t)(close - name),
                                      .end = close + 1,
                                      .token = token};
        return true;
    }
    return false;
}

/* Whether a secret may be put into a request of this connection. */
static bool secret_may_go(const struct rules *r)
{
    const struct policy *p = r->policy;

    for (size_t i = 0; r->rule && i < r->rule->n_headers; i++)
        if (strstr(r->rule->headers[i].value, SECRET_MARK))
            return true;
    for (size_t i = 0; i < p->n_secrets; i++)
        if (policy_secret_goes_to(&p->secrets[i], r->name))
            return true;
    return false;
}

static bool token_may_go(const struct rules *r)
{
    for (size_t i = 0; r->rule && i < r->rule->n_headers; i++)
        if (identity_mentioned(r->policy, r->rule->headers[i].value))
            return true;
    return false;
}

/* Takes tokens that are fresh, for a connection or its next request. No response is being scrubbed
 * then. */
static void take_tokens(struct rules *r)
{
    struct sg_error e = {0};
    struct identity_live *now;

    if (!token_may_go(r))
        return;
    now = identity_take(r->sandbox, r->policy, &e);
    r->no_tokens = !now;
    if (!now) {
        log_line(LEVEL_ERROR, "guard: a token cannot be made: %s", e.message);
        return;
    }
    identity_unref(r->tokens);
    r->tokens = now;
    r->scrub = identity_scrub(now);
}

void rules_init(struct rules *r, struct sandbox *s, struct policy *p, const char *name)
{
    *r = (struct rules){.sandbox = s, .policy = p, .name = name, .rule = policy_rule(p, name)};
    snprintf(r->label, sizeof(r->label), "rules %s", r->rule ? r->rule->domain : name);
    if (secret_may_go(r))
        r->scrub = p->scrub;
    take_tokens(r);
}

void rules_done(struct rules *r)
{
    identity_unref(r->tokens);
    r->tokens = NULL;
    r->scrub = NULL;
}

static void on_record(struct rules *r, const struct policy_secret *s, bool allowed,
                      const char *rule)
{
    RECORD(r->sandbox, .kind = "secret", .allowed = allowed, .rule = rule, .name = r->name,
           .detail = s->name);
}

/* ---- a secret -------------------------------------------------------------------------------- */

static int put_secret(struct rules *r, const struct policy_secret *s, struct strbuf *out,
                      char why[RULES_WHY])
{
    size_t i = (size_t)(s - r->policy->secrets);

    if (s->value.len > SCRUB_VALUE_MAX || !http_is_value((char *)s->value.bytes, s->value.len)) {
        snprintf(why, RULES_WHY, "the secret %s cannot be in a header: it %s", s->name,
                 s->value.len > SCRUB_VALUE_MAX ? "is too long"
                                                : "has line breaks or other controls");
        return BAD_RULE;
    }
    if (!(r->told[i / 64] >> i % 64 & 1))
        on_record(r, s, true, r->label);
    r->told[i / 64] |= 1ull << i % 64;
    strbuf_add(out, s->value.bytes, s->value.len);
    return 0;
}

/* ---- headers of the rule --------------------------------------------------------------------- */

static int put_named(struct rules *r, const char *name, size_t len, struct strbuf *out,
                     char why[RULES_WHY])
{
    const struct policy_secret *s = policy_secret(r->policy, name, len);

    if (!s) {
        snprintf(why, RULES_WHY, "the rule for %s names the secret %.*s, which does not exist",
                 r->name, (int)(len < 64 ? len : 64), name);
        return BAD_RULE;
    }
    if (s->n_hosts > 0 && !policy_secret_goes_to(s, r->name)) {
        on_record(r, s, false, "the secret is not for this host");
        snprintf(why, RULES_WHY, "the rule for %s names the secret %s, which may not go there",
                 r->name, s->name);
        return BAD_RULE;
    }
    return put_secret(r, s, out, why);
}

/* A name that nobody has registered stays as it is written, as at E2B. */
static int put_token(struct rules *r, const struct rules_mention *m, struct strbuf *out,
                     char why[RULES_WHY])
{
    const struct secret *token = r->tokens ? identity_token(r->tokens, m->name, m->len) : NULL;

    if (r->no_tokens) {
        snprintf(why, RULES_WHY, "a token cannot be made");
        return BAD_RULE;
    }
    if (!token) {
        strbuf_add(out, m->at, (size_t)(m->end - m->at));
        return 0;
    }
    if (!r->told_tokens)
        RECORD(r->sandbox, .kind = "token", .allowed = true, .rule = r->label, .name = r->name);
    r->told_tokens = true;
    strbuf_add(out, token->bytes, token->len);
    return 0;
}

/* Writes a header's value of the rule, with secrets and tokens in place of their markers. */
static int expand(struct rules *r, const char *value, struct strbuf *out, char why[RULES_WHY])
{
    struct rules_mention m;

    for (; rules_mention(value, &m); value = m.end) {
        int status;

        strbuf_add(out, value, (size_t)(m.at - value));
        status = m.token ? put_token(r, &m, out, why) : put_named(r, m.name, m.len, out, why);
        if (status)
            return status;
    }
    strbuf_addstr(out, value);
    return 0;
}

static const struct policy_header *rule_header(const struct rules *r, struct http_text name)
{
    for (size_t i = 0; r->rule && i < r->rule->n_headers; i++)
        if (http_text_is(name, r->rule->headers[i].name))
            return &r->rule->headers[i];
    return NULL;
}

/* Whether a header asks for a part of a response, or for one in an encoding that the scrubber does
 * not read. */
static bool asks_for_other_form(struct http_text name)
{
    static const char *const names[] = {"range", "if-range", "request-range", "accept-charset"};

    for (size_t i = 0; i < ARRAY_SIZE(names); i++)
        if (http_text_is(name, names[i]))
            return true;
    return false;
}

static int write_rule(struct rules *r, struct strbuf *out, char why[RULES_WHY])
{
    for (size_t i = 0; r->rule && i < r->rule->n_headers; i++) {
        const struct policy_header *h = &r->rule->headers[i];
        int status;

        /* No rule may change how messages are framed. */
        if (http_is_own(h->name) ||
            (r->scrub && asks_for_other_form((struct http_text){h->name, strlen(h->name)})))
            continue;
        strbuf_addstr(out, h->name);
        strbuf_addstr(out, ": ");
        status = expand(r, h->value, out, why);
        if (status)
            return status;
        strbuf_addstr(out, "\r\n");
    }
    return 0;
}

/* ---- placeholders ---------------------------------------------------------------------------- */

static bool in_header(const struct policy_secret *s, struct http_text name)
{
    static const char *const usual[] = {"authorization", "x-api-key", "api-key", "x-goog-api-key"};

    for (size_t i = 0; i < s->n_headers; i++)
        if (http_text_is(name, s->headers[i]))
            return true;
    for (size_t i = 0; s->n_headers == 0 && i < ARRAY_SIZE(usual); i++)
        if (http_text_is(name, usual[i]))
            return true;
    return false;
}

static const char *find(struct http_text t, const char *what)
{
    return what[0] ? memmem(t.p, t.len, what, strlen(what)) : NULL;
}

/* Finds the first placeholder in a text that may be replaced here. */
static const struct policy_secret *first_placeholder(const struct rules *r, struct http_text name,
                                                     struct http_text t, const char **ret_at)
{
    const struct policy_secret *found = NULL;

    for (size_t i = 0; i < r->policy->n_secrets; i++) {
        const struct policy_secret *s = &r->policy->secrets[i];
        const char *at = find(t, s->placeholder);

        if (!at || (found && at > *ret_at) || !policy_secret_goes_to(s, r->name) ||
            !in_header(s, name))
            continue;
        found = s;
        *ret_at = at;
    }
    return found;
}

static int replace(struct rules *r, struct http_text name, struct http_text t, struct strbuf *out,
                   char why[RULES_WHY])
{
    const struct policy_secret *s;
    const char *at = NULL;

    while ((s = first_placeholder(r, name, t, &at))) {
        size_t n = (size_t)(at - t.p) + strlen(s->placeholder);
        int status;

        strbuf_add(out, t.p, (size_t)(at - t.p));
        status = put_secret(r, s, out, why);
        if (status)
            return status;
        t = (struct http_text){t.p + n, t.len - n};
    }
    strbuf_add(out, t.p, t.len);
    return 0;
}

/* A buffer that never moves, in the caller's memory; the caller wipes it. */
static struct strbuf fixed(char *mem, size_t size)
{
    mem[0] = '\0';
    return (struct strbuf){.buf = mem, .cap = size, .max = size - 1};
}

/* Replaces a placeholder in the password of Basic, where git and others send a token: it is inside
 * base64 then. False: there is none. */
static bool replace_basic(struct rules *r, const struct http_field *f, struct strbuf *out,
                          int *status, char why[RULES_WHY])
{
    static char memory[2][BASIC]; /* used by the loop's thread only */
    struct strbuf had = fixed(memory[0], BASIC), has = fixed(memory[1], BASIC);
    const char *at;
    size_t n = strlen("Basic ");

    if (f->value.len <= n || f->value.len > BASIC || strncasecmp(f->value.p, "Basic ", n) != 0 ||
        base64_decode(&had, f->value.p + n, f->value.len - n) < 0 || had.truncated)
        return false;
    struct http_text plain = {had.buf, had.len};
    if (!first_placeholder(r, f->name, plain, &at))
        return false;
    *status = replace(r, f->name, plain, &has, why);
    if (*status == 0 && has.truncated) {
        snprintf(why, RULES_WHY, "the header with a placeholder is too long");
        *status = BAD_RULE;
    }
    strbuf_addstr(out, "Basic ");
    base64_encode(out, has.buf, has.len);
    explicit_bzero(memory, sizeof(memory));
    return true;
}

static int write_field(struct rules *r, const struct http_field *f, struct strbuf *out,
                       char why[RULES_WHY])
{
    int status = 0;

    strbuf_add(out, f->name.p, f->name.len);
    strbuf_addstr(out, ": ");
    if (!replace_basic(r, f, out, &status, why))
        status = replace(r, f->name, f->value, out, why);
    strbuf_addstr(out, "\r\n");
    return status;
}

/* Puts on record placeholders of secrets that are not for this host. They are passed on as they
 * are, since they are worth nothing. */
static void note_strays(struct rules *r, const struct http_message *m)
{
    for (size_t i = 0; i < r->policy->n_secrets; i++) {
        const struct policy_secret *s = &r->policy->secrets[i];
        bool seen = false;

        if (!s->placeholder[0] || policy_secret_goes_to(s, r->name))
            continue;
        for (size_t k = 0; k < m->n_fields && !seen; k++)
            seen = find(m->fields[k].value, s->placeholder);
        if (seen || find(m->target, s->placeholder))
            on_record(r, s, false, "a placeholder in a request to another host");
    }
}

/* ---- the fields of a request ----------------------------------------------------------------- */

static void write_if_there(struct strbuf *out, const struct http_field *f)
{
    if (f)
        http_write_field(out, f->name, f->value);
}

int rules_write(struct rules *r, const struct http_message *m, bool plain_body, struct strbuf *out,
                char why[RULES_WHY])
{
    const struct http_field *encoding = NULL, *extensions = NULL;
    int status = 0;

    take_tokens(r);
    note_strays(r, m);
    for (size_t i = 0; i < m->n_fields && status == 0; i++) {
        const struct http_field *f = &m->fields[i];

        if (!http_passes(m, f) || rule_header(r, f->name) ||
            (r->scrub && asks_for_other_form(f->name)))
            continue;
        if (http_text_is(f->name, "accept-encoding"))
            encoding = f;
        else if (http_text_is(f->name, "sec-websocket-extensions"))
            extensions = f;
        else if (!plain_body || !http_text_is(f->name, "content-encoding"))
            status = write_field(r, f, out, why);
    }
    if (status == 0)
        status = write_rule(r, out, why);
    /* A response that is to be scrubbed must not come packed. */
    if (r->scrub) {
        strbuf_addstr(out, "Accept-Encoding: identity\r\n");
    } else {
        write_if_there(out, encoding);
        write_if_there(out, extensions);
    }
    return status;
}
