#include "front/e2b/network.h"

#include <arpa/inet.h>
#include <ctype.h>

#include "front/e2b/field.h"
#include "front/core/hostname.h"

#define ENTRIES_MAX      1000
#define PORTS_MAX        100
#define HOST_MAX         255
#define CREDENTIAL_MAX   255 /* the limit of SOCKS5 */
#define RULE_DOMAINS     10
#define RULE_DOMAIN_LEN  128
#define RULE_HEADERS     20
#define RULE_NAME_LEN    64
#define RULE_VALUE_LEN   2048
#define ALL_TRAFFIC      "0.0.0.0/0"
#define PORT_PLACEHOLDER "${PORT}"

static int invalid(struct sg_error *e, const char *fmt, ...) PRINTF(2, 3);
static int invalid(struct sg_error *e, const char *fmt, ...)
{
    char message[400];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(message, sizeof(message), fmt, ap);
    va_end(ap);
    return err_set(e, SG_ERR_INVALID, -EINVAL, "%s", message);
}

/* ---- addresses and names --------------------------------------------------------------------- */

/* Whether s is an address, or a network with the length of its prefix. For a network, *ret_zero
 * tells whether its address is all zeros. */
static bool is_address(const char *s, bool *ret_zero)
{
    static const unsigned char zero[16];
    unsigned char bytes[16];
    char address[INET6_ADDRSTRLEN + 1];
    size_t len = strcspn(s, "/");
    bool v6;

    if (len >= sizeof(address))
        return false;
    memcpy(address, s, len);
    address[len] = '\0';
    v6 = strchr(address, ':') != NULL;
    if (inet_pton(v6 ? AF_INET6 : AF_INET, address, bytes) != 1)
        return false;
    *ret_zero = memcmp(bytes, zero, v6 ? 16 : 4) == 0;
    if (!s[len])
        return true;
    const char *prefix = s + len + 1;
    size_t digits = strspn(prefix, "0123456789");
    if (digits == 0 || digits > 3 || prefix[digits] || (digits > 1 && prefix[0] == '0'))
        return false;
    return strtol(prefix, NULL, 10) <= (v6 ? 128 : 32);
}

static int check_denied(const char *entry, bool *ret_all, struct sg_error *e)
{
    bool all = strcmp(entry, ALL_TRAFFIC) == 0, zero;

    if (!is_address(entry, &zero) || (zero && !all))
        return invalid(e, "invalid denied CIDR %.80s", entry);
    *ret_all |= all;
    return 0;
}

static int check_denied_or_name(const char *entry, bool *ret_all, struct sg_error *e)
{
    bool zero;

    if (!is_address(entry, &zero) && hostname_pattern_valid(entry))
        return 0;
    return check_denied(entry, ret_all, e);
}

static int check_allowed(const char *entry, bool *ret_domain, struct sg_error *e)
{
    bool zero;

    if (is_address(entry, &zero)) {
        if (zero && strcmp(entry, ALL_TRAFFIC) != 0)
            return invalid(e, "invalid allowed address %.80s", entry);
        return 0;
    }
    if (!hostname_pattern_valid(entry))
        return invalid(e, "invalid allowed address %.80s", entry);
    *ret_domain = true;
    return 0;
}

static int copy_entries(const json_t *given, const char *name, json_t *to,
                        int (*check)(const char *entry, bool *ret_flag, struct sg_error *e),
                        bool *ret_flag, struct sg_error *e)
{
    const json_t *list = NULL;
    int r = field_array(given, name, ENTRIES_MAX, &list, e);

    if (r < 0 || !list)
        return r;
    json_t *copy = json_array();
    json_object_set_new(to, name, copy);
    for (size_t i = 0; r == 0 && i < json_array_size(list); i++) {
        const json_t *v = json_array_get(list, i);

        if (!json_is_string(v))
            return invalid(e, FIELD_ERROR "'%s' must be an array of strings", name);
        r = check(json_string_value(v), ret_flag, e);
        json_array_append_new(copy, json_string(json_string_value(v)));
    }
    return r;
}

/* ---- outgoing traffic ------------------------------------------------------------------------ */

static bool is_port(const char *s)
{
    size_t len = strspn(s, "0123456789");

    return len > 0 && len <= 5 && !s[len] && strtol(s, NULL, 10) >= 1 &&
           strtol(s, NULL, 10) <= 65535;
}

/* Whether the host is a name, an IPv4 address, or an IPv6 address in brackets. */
static bool is_proxy_host(const char *host, size_t len)
{
    char name[HOST_MAX + 1];
    bool bracketed = len > 2 && host[0] == '[' && host[len - 1] == ']', zero;

    if (len > HOST_MAX)
        return false;
    memcpy(name, host, len);
    name[len] = '\0';
    if (!bracketed)
        return hostname_valid(name);
    name[len - 1] = '\0';
    return strchr(name, ':') && !strchr(name, '/') && is_address(name + 1, &zero);
}

static int check_proxy(const char *address, const char *username, const char *password,
                       struct sg_error *e)
{
    const char *colon = address ? strrchr(address, ':') : NULL;

    if (!address || !address[0])
        return invalid(e, "Invalid egress proxy config: egress proxy address must not be empty");
    if (!colon || !is_proxy_host(address, (size_t)(colon - address)))
        return invalid(e, "Invalid egress proxy config: egress proxy address must be in host:port "
                          "form");
    if (!is_port(colon + 1))
        return invalid(e,
                       "Invalid egress proxy config: egress proxy port \"%.20s\" is not a valid "
                       "1-65535 value",
                       colon + 1);
    if (password && password[0] && (!username || !username[0]))
        return invalid(e, "Invalid egress proxy config: egress proxy password must be empty when "
                          "username is empty");
    return 0;
}

static int copy_proxy(const json_t *given, json_t *to, struct sg_error *e)
{
    const char *address = NULL, *username = NULL, *password = NULL;
    const json_t *proxy = NULL;
    int r = field_object(given, "egressProxy", &proxy, e);

    if (r < 0 || !proxy)
        return r;
    r = field_string(proxy, "address", HOST_MAX, &address, e);
    if (r == 0)
        r = field_string(proxy, "username", CREDENTIAL_MAX, &username, e);
    if (r == 0)
        r = field_string(proxy, "password", CREDENTIAL_MAX, &password, e);
    if (r == 0)
        r = check_proxy(address, username, password, e);
    if (r < 0)
        return r;
    json_t *copy = json_object();
    json_object_set_new(copy, "address", json_string(address));
    if (username)
        json_object_set_new(copy, "username", json_string(username));
    if (password)
        json_object_set_new(copy, "password", json_string(password));
    json_object_set_new(to, "egressProxy", copy);
    return 0;
}

static bool is_header_name(const char *s)
{
    for (; *s; s++)
        if ((unsigned char)*s >= 0x80 ||
            (!isalnum((unsigned char)*s) && !strchr("!#$%&'*+-.^_`|~", *s)))
            return false;
    return true;
}

static bool is_header_value(const char *s)
{
    for (; *s; s++)
        if (((unsigned char)*s < 0x20 && *s != '\t') || *s == 0x7f)
            return false;
    return true;
}

static int check_header(const char *domain, const char *name, const char *value, struct sg_error *e)
{
    if (!name[0])
        return invalid(e, "Header name in rule for domain \"%s\" must not be empty.", domain);
    if (!is_header_name(name))
        return invalid(e,
                       "Header name \"%.64s\" in rule for domain \"%s\" must contain only valid "
                       "HTTP token characters.",
                       name, domain);
    if (strlen(name) > RULE_NAME_LEN)
        return invalid(e,
                       "Header name \"%.64s\" in rule for domain \"%s\" exceeds maximum length of "
                       "%d characters.",
                       name, domain, RULE_NAME_LEN);
    if (!is_header_value(value))
        return invalid(e,
                       "Value for header \"%.64s\" in rule for domain \"%s\" contains invalid "
                       "characters.",
                       name, domain);
    if (strlen(value) > RULE_VALUE_LEN)
        return invalid(e,
                       "Value for header \"%.64s\" in rule for domain \"%s\" exceeds maximum "
                       "length of %d characters.",
                       name, domain, RULE_VALUE_LEN);
    return 0;
}

/* Copies a rule: {"transform":{"headers":{...}}} */
static int copy_rule(const char *domain, const json_t *rule, json_t *to, struct sg_error *e)
{
    const json_t *transform = NULL, *headers = NULL;
    int r = json_is_object(rule) ? field_object(rule, "transform", &transform, e)
                                 : invalid(e, FIELD_ERROR "'rules' must hold objects");

    if (r == 0 && transform)
        r = field_strings(transform, "headers", 64 * 1024, &headers, e);
    if (r < 0)
        return r;
    json_t *copy = json_object(), *kept = json_object(), *walk = (json_t *)(uintptr_t)headers;
    json_array_append_new(to, copy);
    if (!transform) {
        json_decref(kept);
        return 0;
    }
    json_object_set_new(copy, "transform", json_pack("{s:o}", "headers", kept));
    if (json_object_size(headers) > RULE_HEADERS)
        return invalid(e, "Domain \"%s\" can have at most %d headers per rule.", domain,
                       RULE_HEADERS);
    for (void *at = json_object_iter(walk); r == 0 && at; at = json_object_iter_next(walk, at)) {
        const char *value = json_string_value(json_object_iter_value(at));

        r = check_header(domain, json_object_iter_key(at), value, e);
        json_object_set_new(kept, json_object_iter_key(at), json_string(value));
    }
    return r;
}

static int copy_domain_rules(const char *given, const json_t *rules, json_t *to, struct sg_error *e)
{
    char domain[RULE_DOMAIN_LEN + 1];
    int r = 0;

    if (!given[0])
        return invalid(e, "Rule domain must not be empty.");
    if (strlen(given) > RULE_DOMAIN_LEN)
        return invalid(e, "Rule domain \"%.40s...\" exceeds maximum length of %d characters.",
                       given, RULE_DOMAIN_LEN);
    for (size_t i = 0; i <= strlen(given); i++)
        domain[i] = (char)tolower((unsigned char)given[i]);
    if (!hostname_pattern_valid(domain))
        return invalid(e, "Rule domain \"%s\" is not a valid domain name.", domain);
    if (!json_is_array(rules))
        return invalid(e, FIELD_ERROR "'rules' must hold arrays");
    if (json_array_size(rules) > 1)
        return invalid(e, "Domain \"%s\" can have at most 1 transform rule.", domain);
    for (void *at = json_object_iter(to); at; at = json_object_iter_next(to, at))
        if (strcmp(json_object_iter_key(at), domain) == 0)
            return invalid(e, "Domain \"%s\" can have at most 1 transform rule.", domain);
    json_t *copy = json_array();
    json_object_set_new(to, domain, copy);
    for (size_t i = 0; r == 0 && i < json_array_size(rules); i++)
        r = copy_rule(domain, json_array_get(rules, i), copy, e);
    return r;
}

static int copy_rules(const json_t *given, json_t *to, struct sg_error *e)
{
    const json_t *rules = NULL;
    int r = field_object(given, "rules", &rules, e);

    if (r < 0 || !rules)
        return r;
    if (json_object_size(rules) > RULE_DOMAINS)
        return invalid(e, "Network rules can have at most %d domains.", RULE_DOMAINS);
    json_t *copy = json_object(), *walk = (json_t *)(uintptr_t)rules;
    json_object_set_new(to, "rules", copy);
    for (void *at = json_object_iter(walk); r == 0 && at; at = json_object_iter_next(walk, at))
        r = copy_domain_rules(json_object_iter_key(at), json_object_iter_value(at), copy, e);
    return r;
}

static int copy_egress(const json_t *given, bool own, json_t *to, struct sg_error *e)
{
    bool has_domain = false, denies_all = false;
    int r = copy_entries(given, "denyOut", to, own ? check_denied_or_name : check_denied,
                         &denies_all, e);

    if (r == 0)
        r = copy_entries(given, "allowOut", to, check_allowed, &has_domain, e);
    if (r == 0 && has_domain && !denies_all && !own)
        r = invalid(e, "When specifying allowed domains in allow out, you must include "
                       "'ALL_TRAFFIC' in deny out to block all other traffic.");
    if (r == 0)
        r = copy_proxy(given, to, e);
    if (r == 0)
        r = copy_rules(given, to, e);
    return r;
}

/* ---- incoming traffic ------------------------------------------------------------------------ */

static int check_mask(const char *host, struct sg_error *e)
{
    size_t len = strlen(host);

    for (size_t i = 0; i < len; i++)
        if ((unsigned char)host[i] >= 0x80)
            return invalid(e,
                           "mask request host '%.255s' is not ASCII. Please use ASCII characters "
                           "only.",
                           host);
    for (const char *p = host; *p;) {
        bool placeholder = strncmp(p, PORT_PLACEHOLDER, strlen(PORT_PLACEHOLDER)) == 0;

        if (!placeholder && !isalnum((unsigned char)*p) && !strchr("-_.:[]", *p))
            return invalid(e, "mask request host is not valid: %.255s", host);
        p += placeholder ? strlen(PORT_PLACEHOLDER) : 1;
    }
    return len > 0 ? 0 : invalid(e, "mask request host is not valid: it is empty");
}

static int copy_ports(const json_t *given, json_t *to, struct sg_error *e)
{
    const json_t *ports = NULL;
    int r = field_array(given, "httpsPorts", PORTS_MAX, &ports, e);

    if (r < 0 || !ports)
        return r;
    json_t *copy = json_array();
    json_object_set_new(to, "httpsPorts", copy);
    for (size_t i = 0; i < json_array_size(ports); i++) {
        const json_t *v = json_array_get(ports, i);
        json_int_t port = json_integer_value(v);

        if (!json_is_integer(v) || port < 1 || port > 65535)
            return invalid(e, FIELD_ERROR "'httpsPorts' must hold numbers from 1 to 65535");
        json_array_append_new(copy, json_integer(port));
    }
    return 0;
}

static int copy_ingress(const json_t *given, json_t *to, struct sg_error *e)
{
    const char *mask = NULL;
    int open = -1;
    int r = field_tristate(given, "allowPublicTraffic", &open, e);

    if (r == 0)
        r = field_string(given, "maskRequestHost", HOST_MAX, &mask, e);
    if (r == 0 && mask)
        r = check_mask(mask, e);
    if (r == 0)
        r = copy_ports(given, to, e);
    if (r < 0)
        return r;
    if (open >= 0)
        json_object_set_new(to, "allowPublicTraffic", json_boolean(open));
    if (mask)
        json_object_set_new(to, "maskRequestHost", json_string(mask));
    return 0;
}

int network_parse(const json_t *given, bool own, json_t **ret, struct sg_error *e)
{
    json_t *network = json_object();
    int r = copy_ingress(given, network, e);

    if (r == 0)
        r = copy_egress(given, own, network, e);
    if (r < 0)
        json_decref(network);
    else
        *ret = network;
    return r;
}

int network_update(const json_t *body, const json_t *old, json_t **ret, struct sg_error *e)
{
    static const char *const ingress[] = {"allowPublicTraffic", "maskRequestHost", "httpsPorts"};
    json_t *network = json_object();
    int r = copy_egress(body, false, network, e);

    if (r < 0) {
        json_decref(network);
        return r;
    }
    for (size_t i = 0; i < ARRAY_SIZE(ingress); i++) {
        json_t *v = json_object_get(old, ingress[i]);

        if (v)
            json_object_set(network, ingress[i], v);
    }
    *ret = network;
    return 0;
}

void network_close(int *internet, const json_t *network)
{
    if (*internet < 0)
        *internet = json_array_size(json_object_get(network, "denyOut")) > 0;
}

bool network_is_public(const json_t *network)
{
    return !json_is_false(json_object_get(network, "allowPublicTraffic"));
}
