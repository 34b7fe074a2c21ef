#include "guard/identity.h"

#include "guard/inspect_rules.h"
#include "guard/scrub.h"
#include "lib/base/clock.h"
#include "lib/vault/vault.h"

struct identity_live {
    unsigned refs;
    struct policy *policy;
    int64_t made_s;
    struct secret *tokens; /* as many as the policy names */
    struct secret *replaced;
    size_t n_replaced;
    struct scrub *scrub;
};

struct identity_live *identity_ref(struct identity_live *l)
{
    l->refs++;
    return l;
}

static void tokens_free(struct secret *tokens, size_t n)
{
    for (size_t i = 0; tokens && i < n; i++)
        secret_done(&tokens[i]);
    free(tokens);
}

void identity_unref(struct identity_live *l)
{
    if (!l || --l->refs > 0)
        return;
    scrub_free(l->scrub);
    tokens_free(l->tokens, l->policy->identity.n_tokens);
    tokens_free(l->replaced, l->n_replaced);
    policy_unref(l->policy);
    free(l);
}

/* ---- making ---------------------------------------------------------------------------------- */

static int make_token(struct guard *g, const struct identity_live *l, size_t i, struct sg_error *e)
{
    static char memory[SCRUB_VALUE_MAX + 1]; /* used by the loop's thread only; wiped */
    struct strbuf text = {.buf = memory, .cap = sizeof(memory), .max = SCRUB_VALUE_MAX};
    const struct policy_identity *who = &l->policy->identity;

    memory[0] = '\0';
    int r = identity_make(g->key, who, &who->tokens[i], l->made_s, &text, e);
    if (r == 0 && secret_set(&l->tokens[i], text.buf, text.len) < 0)
        r = err_set(e, SG_ERR_LIMIT, -ENOMEM, "no more memory can be locked");
    explicit_bzero(memory, text.len);
    return r;
}

/* A server that got a token before can still tell it to the sandbox: so those that were replaced
 * are looked for until they have expired. */
static int keep_replaced(struct identity_live *l, const struct identity_live *old)
{
    int r = 0;

    if (!old || l->made_s - old->made_s > IDENTITY_LIFE_S)
        return 0;
    l->n_replaced = old->policy->identity.n_tokens;
    l->replaced = xcalloc(l->n_replaced + 1, sizeof(*l->replaced));
    for (size_t i = 0; r == 0 && i < l->n_replaced; i++)
        r = secret_set(&l->replaced[i], old->tokens[i].bytes, old->tokens[i].len);
    return r;
}

static void make_scrub(struct identity_live *l)
{
    l->scrub = scrub_new();
    policy_scrub_secrets(l->policy, l->scrub);
    for (size_t i = 0; i < l->policy->identity.n_tokens; i++)
        scrub_add(l->scrub, l->tokens[i].bytes, l->tokens[i].len);
    for (size_t i = 0; i < l->n_replaced; i++)
        scrub_add(l->scrub, l->replaced[i].bytes, l->replaced[i].len);
}

static struct identity_live *make(struct sandbox *s, struct policy *p, int64_t now_s,
                                  struct sg_error *e)
{
    struct identity_live *l =
        NEW(struct identity_live, .refs = 1, .policy = policy_ref(p), .made_s = now_s);
    size_t n = p->identity.n_tokens;
    int r = 0;

    l->tokens = xcalloc(n + 1, sizeof(*l->tokens));
    for (size_t i = 0; r == 0 && i < n; i++)
        r = make_token(s->guard, l, i, e);
    if (r == 0 && keep_replaced(l, s->identity) < 0)
        r = err_set(e, SG_ERR_LIMIT, -ENOMEM, "no more memory can be locked");
    if (r < 0) {
        identity_unref(l);
        return NULL;
    }
    make_scrub(l);
    return l;
}

struct identity_live *identity_take(struct sandbox *s, struct policy *p, struct sg_error *e)
{
    int64_t now_s = clock_wall_ms() / 1000;
    const struct identity_live *had = s->identity;
    /* A clock that was set back makes new ones too. */
    bool fresh =
        had && had->policy == p && now_s >= had->made_s && now_s - had->made_s < IDENTITY_RENEW_S;

    if (!fresh) {
        struct identity_live *made = make(s, p, now_s, e);
        if (!made)
            return NULL;
        identity_unref(s->identity);
        s->identity = made;
    }
    return identity_ref(s->identity);
}

/* ---- use ------------------------------------------------------------------------------------- */

static size_t find(const struct policy_identity *who, const char *name, size_t len)
{
    for (size_t i = 0; i < who->n_tokens; i++)
        if (strlen(who->tokens[i].name) == len && memcmp(who->tokens[i].name, name, len) == 0)
            return i;
    return SIZE_MAX;
}

const struct secret *identity_token(const struct identity_live *l, const char *name, size_t len)
{
    size_t i = find(&l->policy->identity, name, len);

    return i == SIZE_MAX ? NULL : &l->tokens[i];
}

const struct scrub *identity_scrub(const struct identity_live *l)
{
    return l->scrub;
}

bool identity_mentioned(const struct policy *p, const char *value)
{
    struct rules_mention m = {.end = value};

    while (rules_mention(m.end, &m))
        if (m.token && find(&p->identity, m.name, m.len) != SIZE_MAX)
            return true;
    return false;
}
