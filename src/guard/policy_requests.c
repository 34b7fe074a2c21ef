/* Reads the part of a policy that is about requests: rules, secrets, tokens, the proxy. */
#include "guard/http_message.h"
#include "guard/policy_impl.h"
#include "guard/scrub.h"

#include <strings.h>

#include "lib/text/parse.h"

#define RULES_MAX          256
#define RULE_HEADERS_MAX   64
#define SECRET_HOSTS_MAX   256
#define SECRET_HEADERS_MAX 32
#define HEADER_VALUE_MAX   4096
#define TOKENS_MAX         16
#define TOKENS_BYTES_MAX   (16u * 1024) /* names and audiences */
#define IDENTITY_TEXT_MAX  768
#define CREDENTIAL_MAX     255 /* the limit of SOCKS5 */

/* Wipes the value of a header. It is meant to hold a marker, but nothing keeps a client from
 * writing a credential there. */
static void wipe_text(const char *text)
{
    char *p = (char *)(uintptr_t)text;

    if (p)
        explicit_bzero(p, strlen(p));
    free(p);
}

/* ---- headers --------------------------------------------------------------------------------- */

static void read_header_name(struct fields *in, const json_t *v, char ret[65])
{
    static const char token[] = "!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyz";
    const char *s = json_string_value(v);
    size_t len = json_string_length(v);

    if (!s || len == 0 || len > 64) {
        field_wrong(in, "a header's name must be a string of 1 to 64 bytes");
        return;
    }
    for (size_t i = 0; i <= len; i++)
        ret[i] = s[i] >= 'A' && s[i] <= 'Z' ? (char)(s[i] - 'A' + 'a') : s[i];
    if (ret[strspn(ret, token)])
        field_wrong(in, "a header's name has bytes that HTTP does not allow in it");
}

/* Reads ["name", "value"]. A value can be a credential, so no error shows one. */
static void read_header(struct fields *in, const json_t *pair, struct policy_header *ret)
{
    const char *value = json_string_value(json_array_get(pair, 1));

    if (json_array_size(pair) != 2)
        field_wrong(in, "a header of a rule must be [name, value]");
    read_header_name(in, json_array_get(pair, 0), ret->name);
    if (!value || strlen(value) > HEADER_VALUE_MAX || !http_is_value(value, strlen(value)))
        field_wrong(in,
                    "the value of header '%s' must be a string of at most %d bytes without control "
                    "characters",
                    ret->name, HEADER_VALUE_MAX);
    if (fields_ok(in))
        ret->value = xstrdup(value);
}

/* ---- rules ----------------------------------------------------------------------------------- */

static void read_rule(struct fields *in, struct policy_rule *ret)
{
    const char *domain = field_text(in, "domain", POLICY_NAME_MAX, "");
    json_t *headers, *pair;
    size_t i;

    if (fields_ok(in) && name_pattern(domain, ret->domain) < 0)
        field_wrong(in, "the domain '%.80s' of a rule is not a name", domain);
    headers = field_array(in, "headers", RULE_HEADERS_MAX);
    ret->headers = xcalloc(json_array_size(headers) + 1, sizeof(*ret->headers));
    json_array_foreach(headers, i, pair) read_header(in, pair, &ret->headers[ret->n_headers++]);
}

static void read_rules(struct policy *p, struct fields *in)
{
    json_t *rules = field_array(in, "rules", RULES_MAX), *v;
    size_t i;

    p->rules = xcalloc(json_array_size(rules) + 1, sizeof(*p->rules));
    json_array_foreach(rules, i, v)
    {
        struct fields of_rule = fields_within(in, v);
        struct policy_rule *rule = &p->rules[p->n_rules++];

        read_rule(&of_rule, rule);
        for (size_t k = 0; k < i; k++)
            if (strcmp(p->rules[k].domain, rule->domain) == 0)
                field_wrong(in, "there are two rules for '%s'", rule->domain);
        if (!fields_ok(in))
            return;
        names_add(p->rule_names, rule->domain, rule);
    }
}

/* ---- secrets --------------------------------------------------------------------------------- */

/* Whether s can name a secret. A sealed text is bound to the name of its secret, among other words,
 * so the name must not have the separator of those words in it. */
static bool is_secret_name(const char *s)
{
    static const char allowed[] =
        "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_-.";
    size_t len = strlen(s);

    return len > 0 && len <= 64 && strspn(s, allowed) == len;
}

static void open_sealed(struct fields *document, const struct vault_key *key, const char *name,
                        const char *sealed, struct secret *ret)
{
    const char *tenant = field_text(document, "tenant", 64, NULL);
    char purpose[256];

    if (!tenant)
        field_wrong(document, "there are secrets and no 'tenant'");
    if (!key)
        field_wrong(document, "there are secrets, and this guard has no key to read them");
    if (!fields_ok(document))
        return;
    snprintf(purpose, sizeof(purpose), "%s/%s", tenant, name);
    int r = vault_open(key, purpose, sealed, ret, document->e);
    if (r < 0)
        fields_check(document, err_wrap(document->e, r, "policy document: secret '%s'", name));
}

static void read_hosts(struct fields *in, struct policy_secret *ret)
{
    json_t *list = field_array(in, "hosts", SECRET_HOSTS_MAX), *v;
    size_t i;

    ret->hosts = xcalloc(json_array_size(list) + 1, sizeof(*ret->hosts));
    json_array_foreach(list, i, v)
    {
        const char *host = json_is_string(v) ? json_string_value(v) : "";

        if (name_pattern(host, ret->hosts[ret->n_hosts++]) < 0)
            field_wrong(in, "the host '%.80s' of secret '%s' is not a name", host, ret->name);
    }
}

static void read_header_names(struct fields *in, struct policy_secret *ret)
{
    json_t *list = field_array(in, "headers", SECRET_HEADERS_MAX), *v;
    size_t i;

    ret->headers = xcalloc(json_array_size(list) + 1, sizeof(*ret->headers));
    json_array_foreach(list, i, v) read_header_name(in, v, ret->headers[ret->n_headers++]);
}

static void read_secret(const struct policy *p, struct fields *document, const json_t *o,
                        const struct vault_key *key, struct policy_secret *ret)
{
    struct fields in = fields_within(document, o);
    const char *name = field_text(&in, "name", 64, "");

    if (!is_secret_name(name))
        field_wrong(&in, "a secret's name must be 1 to 64 letters, digits, '_', '-' and '.'");
    snprintf(ret->name, sizeof(ret->name), "%s", name);
    const char *placeholder = field_text(&in, "placeholder", sizeof(ret->placeholder) - 1, "");
    if (!http_is_value(placeholder, strlen(placeholder)))
        field_wrong(&in, "the placeholder of secret '%s' has control characters in it", name);
    const char *sealed = field_text(&in, "sealed", VAULT_SEALED_MAX, NULL);
    const char *value = p->plain ? field_text(&in, "value", VAULT_SECRET_MAX, NULL) : NULL;
    if (!sealed && !value)
        field_wrong(&in, "secret '%s' has no 'sealed'", name);
    snprintf(ret->placeholder, sizeof(ret->placeholder), "%s", placeholder);
    read_hosts(&in, ret);
    read_header_names(&in, ret);
    if (!fields_ok(&in))
        return;
    if (sealed)
        open_sealed(document, key, name, sealed, &ret->value);
    else if (secret_set(&ret->value, value, strlen(value)) < 0)
        field_wrong(&in, "secret '%s': no more memory can be locked", name);
}

static void read_secrets(struct policy *p, struct fields *in, const struct vault_key *key)
{
    json_t *secrets = field_array(in, "secrets", POLICY_SECRETS_MAX), *v;
    size_t i;

    p->secrets = xcalloc(json_array_size(secrets) + 1, sizeof(*p->secrets));
    json_array_foreach(secrets, i, v)
    {
        struct policy_secret *s = &p->secrets[p->n_secrets++];

        read_secret(p, in, v, key, s);
        if (policy_secret(p, s->name, strlen(s->name)) != s)
            field_wrong(in, "there are two secrets '%s'", s->name);
        if (!fields_ok(in))
            return;
        for (size_t k = 0; s->placeholder[0] && k < s->n_hosts; k++)
            names_add(p->secret_hosts, s->hosts[k], s);
    }
}

void policy_scrub_secrets(const struct policy *p, struct scrub *to)
{
    for (size_t i = 0; i < p->n_secrets; i++)
        if (p->secrets[i].value.len <= SCRUB_VALUE_MAX) /* longer secrets are put into no request */
            scrub_add(to, p->secrets[i].value.bytes, p->secrets[i].value.len);
}

/* Made once for all connections: what a connection costs must not grow with the number of
 * secrets. */
static void make_scrub(struct policy *p)
{
    if (p->n_secrets == 0)
        return;
    p->scrub = scrub_new();
    policy_scrub_secrets(p, p->scrub);
}

/* ---- tokens ---------------------------------------------------------------------------------- */

static const char *copy_text(struct fields *in, const char *name, size_t max)
{
    const char *text = field_text(in, name, max, NULL);

    if (!text)
        field_wrong(in, "the identity has no '%s'", name);
    return text && fields_ok(in) ? xstrdup(text) : NULL;
}

static void read_identity(struct policy *p, struct fields *document)
{
    struct fields in = field_object(document, "identity");
    struct policy_identity *who = &p->identity;
    json_t *tokens = field_texts(&in, "tokens", TOKENS_BYTES_MAX), *audience;
    const char *name;

    if (!in.object)
        return;
    who->issuer = copy_text(&in, "issuer", IDENTITY_TEXT_MAX);
    who->spiffe_id = copy_text(&in, "spiffeId", IDENTITY_TEXT_MAX);
    who->tenant = copy_text(&in, "tenant", IDENTITY_TEXT_MAX);
    who->template_id = copy_text(&in, "template", IDENTITY_TEXT_MAX);
    who->tenant_id = copy_text(document, "tenant", IDENTITY_TEXT_MAX);
    who->sandbox_id = copy_text(document, "sandbox", IDENTITY_TEXT_MAX);
    if (json_object_size(tokens) > TOKENS_MAX)
        field_wrong(&in, "there are more than %d tokens", TOKENS_MAX);
    if (!fields_ok(&in))
        return;
    who->tokens = xcalloc(json_object_size(tokens) + 1, sizeof(*who->tokens));
    json_object_foreach(tokens, name, audience) who->tokens[who->n_tokens++] =
        (struct policy_token){xstrdup(name), xstrdup(json_string_value(audience))};
}

static void identity_done(struct policy_identity *who)
{
    const char *const texts[] = {who->issuer,    who->spiffe_id, who->sandbox_id,
                                 who->tenant_id, who->tenant,    who->template_id};

    for (size_t i = 0; i < ARRAY_SIZE(texts); i++)
        wipe_text(texts[i]);
    for (size_t i = 0; i < who->n_tokens; i++) {
        wipe_text(who->tokens[i].name);
        wipe_text(who->tokens[i].audience);
    }
    free(who->tokens);
}

/* ---- the proxy ------------------------------------------------------------------------------- */

/* Reads "proxy.test:1080", "192.0.2.7:1080" or "[2001:db8::7]:1080". */
static int read_endpoint(struct fields *in, const char *text, struct policy_proxy *ret)
{
    const char *colon = strrchr(text, ':');
    size_t n = colon ? (size_t)(colon - text) : 0;
    bool bracket = n > 2 && text[0] == '[' && text[n - 1] == ']';
    char host[POLICY_NAME_MAX + 1];
    struct net_addr a;
    uint64_t port;

    if (n == 0 || n - (bracket ? 2 : 0) >= sizeof(host))
        return field_wrong(in, "the proxy's address must be host:port");
    snprintf(host, sizeof(host), "%.*s", (int)(n - (bracket ? 2 : 0)), text + bracket);
    if (parse_u64("port", colon + 1, 1, 65535, &port, NULL) < 0)
        return field_wrong(in, "the proxy's port must be a number from 1 to 65535");
    ret->port = (uint16_t)port;
    if (net_addr_parse(host, &a) == 0 && bracket == (strchr(host, ':') != NULL))
        snprintf(ret->host, sizeof(ret->host), "%s", host);
    else if (bracket || name_normalise(host, strlen(host), ret->host) < 0)
        return field_wrong(in, "the proxy's host is neither a name nor an address; an IPv6 address "
                               "needs brackets");
    return 0;
}

static void read_proxy(struct policy *p, struct fields *document)
{
    struct fields in = field_object(document, "proxy");

    if (!in.object)
        return;
    p->proxy = xcalloc(1, sizeof(*p->proxy));
    const char *address = field_text(&in, "address", POLICY_NAME_MAX + 10, "");
    const char *username = field_text(&in, "username", CREDENTIAL_MAX, "");
    const char *password = field_text(&in, "password", CREDENTIAL_MAX, "");
    read_endpoint(&in, address, p->proxy);
    snprintf(p->proxy->username, sizeof(p->proxy->username), "%s", username);
    if (password[0] && !username[0])
        field_wrong(&in, "the proxy has a password and no user name");
    if (password[0] && fields_ok(&in) &&
        secret_set(&p->proxy->password, password, strlen(password)) < 0)
        field_wrong(&in, "no more memory can be locked");
}

/* ---- all parts ------------------------------------------------------------------------------- */

void policy_requests_read(struct policy *p, struct fields *in, const struct vault_key *key)
{
    p->rule_names = names_new();
    p->secret_hosts = names_new();
    read_rules(p, in);
    read_secrets(p, in, key);
    read_proxy(p, in);
    read_identity(p, in);
    if (fields_ok(in))
        make_scrub(p);
}

void policy_requests_done(struct policy *p)
{
    for (size_t i = 0; i < p->n_rules; i++) {
        for (size_t k = 0; k < p->rules[i].n_headers; k++)
            wipe_text(p->rules[i].headers[k].value);
        free(p->rules[i].headers);
    }
    scrub_free(p->scrub);
    for (size_t i = 0; i < p->n_secrets; i++) {
        secret_done(&p->secrets[i].value);
        free(p->secrets[i].hosts);
        free(p->secrets[i].headers);
    }
    identity_done(&p->identity);
    if (p->proxy)
        secret_done(&p->proxy->password);
    free(p->rules);
    free(p->secrets);
    free(p->proxy);
    names_free(p->rule_names);
    names_free(p->secret_hosts);
}

bool policy_inspects(const struct policy *p, const char *name)
{
    return names_find(p->rule_names, name) || names_find(p->secret_hosts, name);
}

const struct policy_rule *policy_rule(const struct policy *p, const char *name)
{
    return names_find(p->rule_names, name);
}

const struct policy_secret *policy_secret(const struct policy *p, const char *name, size_t len)
{
    for (size_t i = 0; i < p->n_secrets; i++)
        if (strlen(p->secrets[i].name) == len && strncasecmp(p->secrets[i].name, name, len) == 0)
            return &p->secrets[i];
    return NULL;
}

bool policy_secret_goes_to(const struct policy_secret *s, const char *host)
{
    for (size_t i = 0; i < s->n_hosts; i++)
        if (name_matches(s->hosts[i], host))
            return true;
    return false;
}
