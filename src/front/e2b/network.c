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

static void check_denied(struct fields *in, const char *entry, bool *ret_all)
{
    bool all = strcmp(entry, ALL_TRAFFIC) == 0, zero;

    if (!is_address(entry, &zero) || (zero && !all))
        fields_invalid(in, "invalid denied CIDR %.80s", entry);
    *ret_all |= all;
}

static void check_denied_or_name(struct fields *in, const char *entry, bool *ret_all)
{
    bool zero;

    if (is_address(entry, &zero) || !hostname_pattern_valid(entry))
        check_denied(in, entry, ret_all);
}

static void check_allowed(struct fields *in, const char *entry, bool *ret_domain)
{
    bool zero = false, address = is_address(entry, &zero);

    if (address ? zero && strcmp(entry, ALL_TRAFFIC) != 0 : !hostname_pattern_valid(entry))
        fields_invalid(in, "invalid allowed address %.80s", entry);
    *ret_domain |= !address;
}

static void copy_entries(struct fields *in, const char *name, json_t *to,
                         void (*check)(struct fields *in, const char *entry, bool *ret_flag),
                         bool *ret_flag)
{
    json_t *list = field_array(in, name, ENTRIES_MAX), *v;
    size_t i;

    json_array_foreach(list, i, v)
    {
        if (json_is_string(v))
            check(in, json_string_value(v), ret_flag);
        else
            field_must(in, name, "an array of strings");
    }
    if (list)
        json_object_set_new(to, name, json_deep_copy(list));
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

static void copy_proxy(struct fields *in, json_t *to)
{
    struct fields proxy = field_object(in, "egressProxy");
    const char *address = field_text(&proxy, "address", HOST_MAX, NULL);
    const char *username = field_text(&proxy, "username", CREDENTIAL_MAX, NULL);
    const char *password = field_text(&proxy, "password", CREDENTIAL_MAX, NULL);
    const char *colon = address ? strrchr(address, ':') : NULL;

    if (!proxy.object)
        return;
    if (!address || !address[0])
        fields_invalid(in, "Invalid egress proxy config: egress proxy address must not be empty");
    else if (!colon || !is_proxy_host(address, (size_t)(colon - address)))
        fields_invalid(
            in, "Invalid egress proxy config: egress proxy address must be in host:port form");
    else if (!is_port(colon + 1))
        fields_invalid(
            in,
            "Invalid egress proxy config: egress proxy port \"%.20s\" is not a valid 1-65535 "
            "value",
            colon + 1);
    else if (password && password[0] && (!username || !username[0]))
        fields_invalid(in, "Invalid egress proxy config: egress proxy password must be empty when "
                           "username is empty");
    if (fields_ok(in))
        json_object_set_new(to, "egressProxy",
                            json_pack("{s:s, s:s*, s:s*}", "address", address, "username", username,
                                      "password", password));
}

static bool is_header_name(const char *s)
{
    for (; *s; s++)
        if ((unsigned char)*s >= 0x80 ||
            (!isalnum((unsigned char)*s) && !strchr("!#$%&'*+-.^_`|~", *s)))
            return false;
    return true;
}

bool header_value_valid(const char *s)
{
    for (; *s; s++)
        if (((unsigned char)*s < 0x20 && *s != '\t') || *s == 0x7f)
            return false;
    return true;
}

static void check_header(struct fields *in, const char *domain, const char *name, const char *value)
{
    if (!name[0])
        fields_invalid(in, "Header name in rule for domain \"%s\" must not be empty.", domain);
    if (!is_header_name(name))
        fields_invalid(
            in,
            "Header name \"%.64s\" in rule for domain \"%s\" must contain only valid HTTP token "
            "characters.",
            name, domain);
    if (strlen(name) > RULE_NAME_LEN)
        fields_invalid(
            in,
            "Header name \"%.64s\" in rule for domain \"%s\" exceeds maximum length of %d "
            "characters.",
            name, domain, RULE_NAME_LEN);
    if (!header_value_valid(value))
        fields_invalid(
            in, "Value for header \"%.64s\" in rule for domain \"%s\" contains invalid characters.",
            name, domain);
    if (strlen(value) > RULE_VALUE_LEN)
        fields_invalid(
            in,
            "Value for header \"%.64s\" in rule for domain \"%s\" exceeds maximum length of %d "
            "characters.",
            name, domain, RULE_VALUE_LEN);
}

/* Copies a rule: {"transform":{"headers":{...}}} */
static json_t *copy_rule(struct fields *in, const char *domain, const json_t *rule)
{
    struct fields given = fields_within(in, rule), transform = field_object(&given, "transform");
    json_t *headers = field_texts(&transform, "headers", 64 * 1024), *value;
    const char *name;

    if (!json_is_object(rule))
        field_wrong(in, "'rules' must hold objects");
    if (json_object_size(headers) > RULE_HEADERS)
        fields_invalid(in, "Domain \"%s\" can have at most %d headers per rule.", domain,
                       RULE_HEADERS);
    json_object_foreach(headers, name, value)
        check_header(in, domain, name, json_string_value(value));
    return transform.object ? json_pack("{s:{s:o}}", "transform", "headers",
                                        headers ? json_deep_copy(headers) : json_object())
                            : json_object();
}

static int copy_domain_rules(struct fields *in, const char *given, json_t *rules, json_t *to)
{
    char domain[RULE_DOMAIN_LEN + 1];
    json_t *copy, *rule;
    size_t i;

    if (!given[0])
        return fields_invalid(in, "Rule domain must not be empty.");
    if (strlen(given) > RULE_DOMAIN_LEN)
        return fields_invalid(in,
                              "Rule domain \"%.40s...\" exceeds maximum length of %d characters.",
                              given, RULE_DOMAIN_LEN);
    for (i = 0; i <= strlen(given); i++)
        domain[i] = (char)tolower((unsigned char)given[i]);
    if (!hostname_pattern_valid(domain))
        return fields_invalid(in, "Rule domain \"%s\" is not a valid domain name.", domain);
    if (!json_is_array(rules))
        return field_wrong(in, "'rules' must hold arrays");
    if (json_array_size(rules) > 1 || json_object_get(to, domain))
        return fields_invalid(in, "Domain \"%s\" can have at most 1 transform rule.", domain);
    copy = json_array();
    json_object_set_new(to, domain, copy);
    json_array_foreach(rules, i, rule) json_array_append_new(copy, copy_rule(in, domain, rule));
    return 0;
}

static void copy_rules(struct fields *in, json_t *to)
{
    struct fields rules = field_object(in, "rules");
    json_t *copy, *list;
    const char *domain;

    if (!rules.object)
        return;
    if (json_object_size(rules.object) > RULE_DOMAINS)
        fields_invalid(in, "Network rules can have at most %d domains.", RULE_DOMAINS);
    copy = json_object();
    json_object_set_new(to, "rules", copy);
    json_object_foreach((json_t *)(uintptr_t)rules.object, domain, list)
        copy_domain_rules(in, domain, list, copy);
}

static void copy_egress(struct fields *in, bool own, json_t *to)
{
    bool has_domain = false, denies_all = false;

    copy_entries(in, "denyOut", to, own ? check_denied_or_name : check_denied, &denies_all);
    copy_entries(in, "allowOut", to, check_allowed, &has_domain);
    if (has_domain && !denies_all && !own)
        fields_invalid(
            in, "When specifying allowed domains in allow out, you must include 'ALL_TRAFFIC' "
                "in deny out to block all other traffic.");
    copy_proxy(in, to);
    copy_rules(in, to);
}

/* ---- incoming traffic ------------------------------------------------------------------------ */

static int check_mask(struct fields *in, const char *host)
{
    for (const char *p = host; *p; p++)
        if ((unsigned char)*p >= 0x80)
            return fields_invalid(
                in,
                "mask request host '%.255s' is not ASCII. Please use ASCII characters "
                "only.",
                host);
    for (const char *p = host; *p;) {
        bool placeholder = strncmp(p, PORT_PLACEHOLDER, strlen(PORT_PLACEHOLDER)) == 0;

        if (!placeholder && !isalnum((unsigned char)*p) && !strchr("-_.:[]", *p))
            return fields_invalid(in, "mask request host is not valid: %.255s", host);
        p += placeholder ? strlen(PORT_PLACEHOLDER) : 1;
    }
    return host[0] ? 0 : fields_invalid(in, "mask request host is not valid: it is empty");
}

static const char *const ingress[] = {"httpsPorts", "allowPublicTraffic", "maskRequestHost"};

static void copy_ingress(const struct fields *from, json_t *to)
{
    for (size_t i = 0; i < ARRAY_SIZE(ingress); i++) {
        const json_t *v = field_get(from, ingress[i]);

        if (v)
            json_object_set_new(to, ingress[i], json_deep_copy(v));
    }
}

static void check_ingress(struct fields *in)
{
    const char *mask;
    json_t *ports, *v;
    size_t i;

    field_flag(in, "allowPublicTraffic", true);
    mask = field_text(in, "maskRequestHost", HOST_MAX, NULL);
    if (mask)
        check_mask(in, mask);
    ports = field_array(in, "httpsPorts", PORTS_MAX);
    json_array_foreach(ports, i, v)
    {
        json_int_t port = json_integer_value(v);

        if (port < 1 || port > 65535)
            field_wrong(in, "'httpsPorts' must hold numbers from 1 to 65535");
    }
}

/* Gives the network away if all fields were right. */
static int finish(const struct fields *in, json_t *network, json_t **ret)
{
    if (in->r < 0)
        json_decref(network);
    else
        *ret = network;
    return in->r;
}

int network_parse(const json_t *given, bool own, json_t **ret, struct sg_error *e)
{
    struct fields in = request_fields(given, e);
    json_t *network = json_object();

    check_ingress(&in);
    copy_ingress(&in, network);
    copy_egress(&in, own, network);
    return finish(&in, network, ret);
}

int network_update(const json_t *body, const json_t *old, json_t **ret, struct sg_error *e)
{
    struct fields in = request_fields(body, e), before = request_fields(old, NULL);
    json_t *network = json_object();

    copy_egress(&in, false, network);
    copy_ingress(&before, network);
    return finish(&in, network, ret);
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
