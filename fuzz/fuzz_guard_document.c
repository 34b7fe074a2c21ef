/* Any bytes as a policy document. "@SEALED@" in them stands for a text that opens: sealed for the
 * tenant "t" and the name "k". What is accepted must be what the code behind relies on. */
#include <assert.h>
#include <string.h>

#include "guard/names.h"
#include "guard/policy.h"

#define MARK "@SEALED@"

static const struct vault_key *test_key(const char **ret_sealed)
{
    static struct vault_key *key;
    static struct strbuf sealed;
    uint8_t public_key[VAULT_PUBLIC_LEN];
    struct sg_error e;

    if (!key) {
        key = vault_key_new();
        vault_key_public(key, public_key);
        strbuf_init(&sealed, VAULT_SEALED_MAX);
        assert(vault_seal(public_key, "t/k", "value", 5, &sealed, &e) == 0);
    }
    *ret_sealed = sealed.buf;
    return key;
}

static void fill_in(const uint8_t *data, size_t len, const char *sealed, struct strbuf *out)
{
    while (len > 0) {
        const uint8_t *mark = memmem(data, len, MARK, strlen(MARK));
        size_t n = mark ? (size_t)(mark - data) : len;

        strbuf_add(out, data, n);
        if (mark) {
            strbuf_addstr(out, sealed);
            n += strlen(MARK);
        }
        data += n;
        len -= n;
    }
}

static void check_pattern(const char *pattern)
{
    char again[POLICY_NAME_MAX + 1];

    assert(name_pattern(pattern, again) == 0 && strcmp(pattern, again) == 0);
}

static void check_header_name(const char *name)
{
    assert(name[0] && strlen(name) <= 64);
    for (; *name; name++)
        assert(*name > ' ' && *name < 0x7f && *name != ':' && !(*name >= 'A' && *name <= 'Z'));
}

static void check_secrets(const struct policy *p)
{
    for (const struct policy_secret *s = p->secrets; s < p->secrets + p->n_secrets; s++) {
        assert(policy_secret(p, s->name, strlen(s->name)) == s);
        assert(strcmp(s->name, "k") == 0 && s->value.len == 5); /* the only one that opens */
        for (size_t i = 0; i < s->n_hosts; i++) {
            check_pattern(s->hosts[i]);
            if (s->hosts[i][0] != '*')
                assert(policy_secret_goes_to(s, s->hosts[i]));
            if (s->hosts[i][0] != '*' && s->placeholder[0])
                assert(policy_inspects(p, s->hosts[i]));
        }
        for (size_t i = 0; i < s->n_headers; i++)
            check_header_name(s->headers[i]);
    }
}

static void check_rules(const struct policy *p)
{
    static const char *const names[] = {"a.test", "x.a.test", "test", "api.test"};

    for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
        const struct policy_rule *r = policy_rule(p, names[i]);

        if (!r)
            continue;
        check_pattern(r->domain);
        assert(name_matches(r->domain, names[i]) && policy_inspects(p, names[i]));
        for (size_t k = 0; k < r->n_headers; k++) {
            check_header_name(r->headers[k].name);
            assert(!strpbrk(r->headers[k].value, "\r\n"));
        }
    }
}

static void check_proxy(const struct policy_proxy *x)
{
    char again[POLICY_NAME_MAX + 1];
    struct net_addr a;

    if (!x)
        return;
    assert(x->port > 0 && (!x->password.bytes || x->username[0]));
    assert(net_addr_parse(x->host, &a) == 0 ||
           name_normalise(x->host, strlen(x->host), again) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    AUTO(strbuf_done) struct strbuf text = {0};
    const char *sealed;
    const struct vault_key *key = test_key(&sealed);
    struct policy *p = NULL;
    struct sg_error e = {0};
    int r;

    strbuf_init(&text, 4u * 1024 * 1024);
    fill_in(data, len, sealed, &text);
    r = policy_parse(text.buf, text.len, key, &p, &e);
    if (r < 0) {
        assert(!p && e.code == r && strncmp(e.message, "policy document: ", 17) == 0);
        return 0;
    }
    assert(strlen(p->hash) == 2 * POLICY_HASH_LEN);
    assert(p->sanitise < SANITISE_MODE_MAX_);
    check_secrets(p);
    check_rules(p);
    check_proxy(p->proxy);
    policy_unref(p);
    return 0;
}
