/* Reads the part of a policy that is about requests: rules, secrets, the proxy. */
#include "guard/policy_impl.h"
#include "guard/scrub.h"

#include <stdio.h>
#include <strings.h>

#define RULES_MAX          256
#define RULE_HEADERS_MAX   64
#define SECRET_HOSTS_MAX   256
#define SECRET_HEADERS_MAX 32
#define HEADER_VALUE_MAX   4096
#define CREDENTIAL_MAX     255 /* the limit of SOCKS5 */

/* ---- headers --------------------------------------------------------------------------------- */

static int read_header_name(const json_t *v, char ret[65], struct sg_error *e)
{
    static const char token[] = "!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyz";
    const char *s = json_string_value(v);
    size_t len = json_string_length(v);

    if (!s || len == 0 || len > 64)
        return document_refuse(e, "a header's name must be a string of 1 to 64 bytes");
    for (size_t i = 0; i <= len; i++)
        ret[i] = s[i] >= 'A' && s[i] <= 'Z' ? (char)(s[i] - 'A' + 'a') : s[i];
    if (ret[strspn(ret, token)])
        return document_refuse(e, "a header's name has bytes that HTTP does not allow in it");
    return 0;
}

static bool is_header_value(const char *s)
{
    for (; *s; s++)
        if (((unsigned char)*s < 0x20 && *s != '\t') || *s == 0x7f)
            return false;
    return true;
}

/* Reads ["name", "value"]. A value can be a credential, so no error shows one. */
static int read_header(const json_t *pair, struct policy_header *ret, struct sg_error *e)
{
    const json_t *value = json_array_get(pair, 1);
    int r;

    if (json_array_size(pair) != 2)
        return document_refuse(e, "a header of a rule must be [name, value]");
    r = read_header_name(json_array_get(pair, 0), ret->name, e);
    if (r < 0)
        return r;
    if (!json_is_string(value) || json_string_length(value) > HEADER_VALUE_MAX ||
        !is_header_value(json_string_value(value)))
        return document_refuse(e,
                               "the value of header '%s' must be a string of at most %d bytes "
                               "without control characters",
                               ret->name, HEADER_VALUE_MAX);
    ret->value = xstrdup(json_string_value(value));
    return 0;
}

/* ---- rules ----------------------------------------------------------------------------------- */

static int read_rule(const json_t *o, struct policy_rule *ret, struct sg_error *e)
{
    const json_t *headers = NULL;
    const char *domain = NULL;
    int r = document_string(o, "domain", POLICY_NAME_MAX, &domain, e);

    if (r == 0 && (!domain || name_pattern(domain, ret->domain) < 0))
        r = document_refuse(e, "the domain '%.80s' of a rule is not a name", domain ? domain : "");
    if (r == 0)
        r = document_array(o, "headers", RULE_HEADERS_MAX, &headers, e);
    if (r < 0)
        return r;
    ret->headers = xcalloc(json_array_size(headers) + 1, sizeof(*ret->headers));
    for (size_t i = 0; r == 0 && i < json_array_size(headers); i++) {
        r = read_header(json_array_get(headers, i), &ret->headers[i], e);
        if (r == 0)
            ret->n_headers++;
    }
    return r;
}

static int read_rules(struct policy *p, const json_t *document, struct sg_error *e)
{
    const json_t *rules = NULL;
    int r = document_array(document, "rules", RULES_MAX, &rules, e);

    p->rules = xcalloc(json_array_size(rules) + 1, sizeof(*p->rules));
    for (size_t i = 0; r == 0 && i < json_array_size(rules); i++) {
        struct policy_rule *rule = &p->rules[p->n_rules++];

        r = read_rule(json_array_get(rules, i), rule, e);
        if (r < 0)
            break;
        for (size_t k = 0; k + 1 < p->n_rules; k++)
            if (strcmp(p->rules[k].domain, rule->domain) == 0)
                return document_refuse(e, "there are two rules for '%s'", rule->domain);
        names_add(p->rule_names, rule->domain, rule);
    }
    return r;
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

static int open_sealed(const struct vault_key *key, const json_t *document, const char *name,
                       const char *sealed, struct secret *ret, struct sg_error *e)
{
    const char *tenant = NULL;
    char purpose[256];
    int r = document_string(document, "tenant", 64, &tenant, e);

    if (r < 0)
        return r;
    if (!tenant)
        return document_refuse(e, "there are secrets and no 'tenant'");
    if (!key)
        return document_refuse(e, "there are secrets, and this guard has no key to read them");
    snprintf(purpose, sizeof(purpose), "%s/%s", tenant, name);
    r = vault_open(key, purpose, sealed, ret, e);
    return r < 0 ? err_wrap(e, r, "policy document: secret '%s'", name) : 0;
}

static int read_hosts(const json_t *o, struct policy_secret *ret, struct sg_error *e)
{
    const json_t *list = NULL;
    int r = document_array(o, "hosts", SECRET_HOSTS_MAX, &list, e);

    ret->hosts = xcalloc(json_array_size(list) + 1, sizeof(*ret->hosts));
    for (size_t i = 0; r == 0 && i < json_array_size(list); i++) {
        const char *host = json_string_value(json_array_get(list, i));

        if (!host || name_pattern(host, ret->hosts[i]) < 0)
            return document_refuse(e, "the host '%.80s' of secret '%s' is not a name",
                                   host ? host : "", ret->name);
        ret->n_hosts++;
    }
    return r;
}

static int read_header_names(const json_t *o, struct policy_secret *ret, struct sg_error *e)
{
    const json_t *list = NULL;
    int r = document_array(o, "headers", SECRET_HEADERS_MAX, &list, e);

    ret->headers = xcalloc(json_array_size(list) + 1, sizeof(*ret->headers));
    for (size_t i = 0; r == 0 && i < json_array_size(list); i++) {
        r = read_header_name(json_array_get(list, i), ret->headers[i], e);
        if (r == 0)
            ret->n_headers++;
    }
    return r;
}

static int keep_plain(const char *name, const char *value, struct secret *ret, struct sg_error *e)
{
    return secret_set(ret, value, strlen(value)) < 0
               ? document_refuse(e, "secret '%s': no more memory can be locked", name)
               : 0;
}

static int read_secret(const struct policy *p, const json_t *document, const json_t *o,
                       const struct vault_key *key, struct policy_secret *ret, struct sg_error *e)
{
    const char *name = "", *sealed = NULL, *value = NULL, *placeholder = "";
    int r = document_string(o, "name", 64, &name, e);

    if (r == 0 && !is_secret_name(name))
        r = document_refuse(e, "a secret's name must be 1 to 64 letters, digits, '_', '-' and '.'");
    if (r < 0)
        return r;
    snprintf(ret->name, sizeof(ret->name), "%s", name);
    r = document_string(o, "placeholder", sizeof(ret->placeholder) - 1, &placeholder, e);
    if (r == 0 && !is_header_value(placeholder))
        r = document_refuse(e, "the placeholder of secret '%s' has control characters in it", name);
    if (r == 0)
        r = document_string(o, "sealed", VAULT_SEALED_MAX, &sealed, e);
    if (r == 0 && p->plain)
        r = document_string(o, "value", VAULT_SECRET_MAX, &value, e);
    if (r == 0 && !sealed && !value)
        r = document_refuse(e, "secret '%s' has no 'sealed'", name);
    if (r < 0)
        return r;
    snprintf(ret->placeholder, sizeof(ret->placeholder), "%s", placeholder);
    r = read_hosts(o, ret, e);
    if (r == 0)
        r = read_header_names(o, ret, e);
    if (r == 0 && sealed)
        r = open_sealed(key, document, name, sealed, &ret->value, e);
    else if (r == 0)
        r = keep_plain(name, value, &ret->value, e);
    return r;
}

static int read_secrets(struct policy *p, const json_t *document, const struct vault_key *key,
                        struct sg_error *e)
{
    const json_t *secrets = NULL;
    int r = document_array(document, "secrets", POLICY_SECRETS_MAX, &secrets, e);

    p->secrets = xcalloc(json_array_size(secrets) + 1, sizeof(*p->secrets));
    for (size_t i = 0; r == 0 && i < json_array_size(secrets); i++) {
        struct policy_secret *s = &p->secrets[p->n_secrets++];

        r = read_secret(p, document, json_array_get(secrets, i), key, s, e);
        if (r < 0)
            break;
        if (policy_secret(p, s->name, strlen(s->name)) != s)
            return document_refuse(e, "there are two secrets '%s'", s->name);
        for (size_t k = 0; s->placeholder[0] && k < s->n_hosts; k++)
            names_add(p->secret_hosts, s->hosts[k], s);
    }
    return r;
}

/* Made once for all connections: what a connection costs must not grow with the number of
 * secrets. */
static void make_scrub(struct policy *p)
{
    if (p->n_secrets == 0)
        return;
    p->scrub = scrub_new();
    for (size_t i = 0; i < p->n_secrets; i++)
        if (p->secrets[i].value.len <= SCRUB_VALUE_MAX) /* longer secrets are put into no request */
            scrub_add(p->scrub, p->secrets[i].value.bytes, p->secrets[i].value.len);
}

/* ---- the proxy ------------------------------------------------------------------------------- */

/* Reads "proxy.test:1080", "192.0.2.7:1080" or "[2001:db8::7]:1080". */
static int read_endpoint(const char *text, struct policy_proxy *ret, struct sg_error *e)
{
    const char *colon = strrchr(text, ':');
    size_t n = colon ? (size_t)(colon - text) : 0;
    bool bracket = n > 2 && text[0] == '[' && text[n - 1] == ']';
    char host[POLICY_NAME_MAX + 1];
    struct net_addr a;
    unsigned port = 0;

    if (n == 0 || n - (bracket ? 2 : 0) >= sizeof(host))
        return document_refuse(e, "the proxy's address must be host:port");
    snprintf(host, sizeof(host), "%.*s", (int)(n - (bracket ? 2 : 0)), text + bracket);
    for (const char *d = colon + 1; *d; d++) {
        if (*d < '0' || *d > '9' || port > 65535)
            return document_refuse(e, "the proxy's port must be a number from 1 to 65535");
        port = port * 10 + (unsigned)(*d - '0');
    }
    if (port == 0 || port > 65535)
        return document_refuse(e, "the proxy's port must be a number from 1 to 65535");
    ret->port = (uint16_t)port;
    if (net_addr_parse(host, &a) == 0 && bracket == (strchr(host, ':') != NULL))
        snprintf(ret->host, sizeof(ret->host), "%s", host);
    else if (bracket || name_normalise(host, strlen(host), ret->host) < 0)
        return document_refuse(e, "the proxy's host is neither a name nor an address; an IPv6 "
                                  "address needs brackets");
    return 0;
}

static int read_proxy(struct policy *p, const json_t *document, struct sg_error *e)
{
    const json_t *o = json_object_get(document, "proxy");
    const char *address = "", *username = "", *password = NULL;
    int r;

    if (!o)
        return 0;
    if (!json_is_object(o))
        return document_refuse(e, "'proxy' must be an object");
    p->proxy = xcalloc(1, sizeof(*p->proxy));
    r = document_string(o, "address", POLICY_NAME_MAX + 10, &address, e);
    if (r == 0)
        r = document_string(o, "username", CREDENTIAL_MAX, &username, e);
    if (r == 0)
        r = document_string(o, "password", CREDENTIAL_MAX, &password, e);
    if (r == 0)
        r = read_endpoint(address, p->proxy, e);
    if (r < 0)
        return r;
    snprintf(p->proxy->username, sizeof(p->proxy->username), "%s", username);
    if (!password || !password[0])
        return 0;
    if (!username[0])
        return document_refuse(e, "the proxy has a password and no user name");
    r = secret_set(&p->proxy->password, password, strlen(password));
    return r < 0 ? document_refuse(e, "no more memory can be locked") : 0;
}

/* ---- all three parts ------------------------------------------------------------------------- */

int policy_requests_read(struct policy *p, const json_t *document, const struct vault_key *key,
                         struct sg_error *e)
{
    int r;

    p->rule_names = names_new();
    p->secret_hosts = names_new();
    r = read_rules(p, document, e);
    if (r == 0)
        r = read_secrets(p, document, key, e);
    if (r == 0)
        r = read_proxy(p, document, e);
    if (r == 0)
        make_scrub(p);
    return r;
}

/* Wipes the value of a header. It is meant to hold a marker, but nothing keeps a client from
 * writing a credential there. */
static void wipe_text(const char *text)
{
    char *p = (char *)(uintptr_t)text;

    if (p)
        explicit_bzero(p, strlen(p));
    free(p);
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

const struct scrub *policy_scrub(const struct policy *p)
{
    return p->scrub;
}

size_t policy_secrets(const struct policy *p, const struct policy_secret **ret)
{
    *ret = p->secrets;
    return p->n_secrets;
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

const struct policy_proxy *policy_proxy(const struct policy *p)
{
    return p->proxy;
}
