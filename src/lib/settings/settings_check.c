/* Checks settings against each other. */
#include "lib/settings/settings.h"

#include <string.h>

#include "lib/settings/address.h"
#include "lib/settings/prices.h"
#include "lib/text/parse.h"

#define MIB (1024ull * 1024)

/* The domain becomes a part of host names, so it must be valid in one. */
static int check_domain(const char *domain, struct sg_error *e)
{
    static const char host[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-.";
    size_t n = strspn(domain, host);
    uint64_t port;

    if (domain[0] == '\0')
        return 0;
    if (n == 0 || domain[0] == '.' || domain[0] == '-' ||
        (domain[n] &&
         (domain[n] != ':' || parse_u64("", domain + n + 1, 1, 65535, &port, NULL) < 0)))
        return err_invalid(e,
                           "domain '%.64s' is not a host name: use for example box.example.com or "
                           "box.test:8443",
                           domain);
    return 0;
}

static int check_listen(const struct settings *s, struct sg_error *e)
{
    const char *cursor = s->listen;
    struct address a;
    int r;

    while ((r = address_next("listen", &cursor, &a, e)) > 0) {
        char text[ADDRESS_TEXT_MAX];
        if (a.loopback || s->tls_cert[0] || s->insecure)
            continue;
        address_format(&a, text);
        return err_set(e, SG_ERR_DENIED, -EPERM,
                       "%s can be reached from other machines: give --tls-cert and --tls-key, or "
                       "--insecure if something in front of it does TLS",
                       text);
    }
    return r;
}

enum settings_store settings_store(const struct settings *s)
{
    return hidden_equals(&s->store, "sqlite", 6)   ? STORE_SQLITE
           : hidden_equals(&s->store, "memory", 6) ? STORE_MEMORY
                                                   : STORE_POSTGRES;
}

/* The error must not repeat the address, which may have a password in it. */
static int check_store(const struct settings *s, struct sg_error *e)
{
    static const char *const known[] = {"postgresql://", "postgres://"};

    if (settings_store(s) != STORE_POSTGRES)
        return 0;
    for (size_t i = 0; i < ARRAY_SIZE(known); i++)
        if (strncmp(hidden_reveal(&s->store), known[i], strlen(known[i])) == 0)
            return 0;
    return err_invalid(e, "store is neither sqlite nor memory nor begins with postgresql://");
}

/* A list of hosts (lib/web/hosts.h). What stands for a host is judged by who connects to it. */
static int check_hosts(const char *name, const char *list, struct sg_error *e)
{
    static const char form[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_:[]/*, ";

    for (const char *p = list, *slashes; (slashes = strstr(p, "//")); p = slashes + 2)
        if ((slashes - list < 5 || strncmp(slashes - 5, "http:", 5) != 0) &&
            (slashes - list < 6 || strncmp(slashes - 6, "https:", 6) != 0))
            return err_invalid(e, "%s: only http:// and https:// can stand before a host: '%.200s'",
                               name, list);
    if (list[strspn(list, form)])
        return err_invalid(
            e, "%s: '%.200s' is no list such as *, example.com, http://localhost:5000", name, list);
    return 0;
}

static int check_url(const char *key, const char *url, struct sg_error *e)
{
    bool known = strncmp(url, "http://", 7) == 0 || strncmp(url, "https://", 8) == 0;
    size_t len = strlen(url);

    for (size_t i = 0; i < len; i++)
        known &= url[i] > 0x20 && url[i] < 0x7f;
    if (len > 0 && (!known || url[len - 1] == '/'))
        return err_invalid(
            e, "%s must be like https://box.example.com, without a slash at its end: '%s'", key,
            url);
    return 0;
}

int settings_check(const struct settings *s, struct sg_error *e)
{
    struct prices prices;
    int r = check_store(s, e);

    if (r == 0)
        r = check_url("public_url", s->public_url, e);
    if (r == 0)
        r = check_url("identity_issuer", s->identity_issuer, e);
    if (r == 0)
        r = check_hosts("build_registries", s->build_registries, e);
    if (r == 0)
        r = check_hosts("webhook_targets", s->webhook_targets, e);
    if (r == 0)
        r = prices_parse(s->prices, &prices, e);
    if (r < 0)
        return r;
    if (s->execution_timeout_ms > s->execution_timeout_max_ms)
        return err_invalid(e, "execution_timeout is longer than execution_timeout_max");
    if (s->checkpoint_keep > s->checkpoint_max)
        return err_invalid(e, "checkpoint_keep %u is more than checkpoint_max %u",
                           s->checkpoint_keep, s->checkpoint_max);

    if (!s->tls_cert[0] != !s->tls_key[0])
        return err_invalid(e, "tls_cert and tls_key go together: %s is missing",
                           s->tls_cert[0] ? "tls_key" : "tls_cert");
    if (s->pool_min > s->pool_max)
        return err_invalid(e, "pool_min %u is more than pool_max %u", s->pool_min, s->pool_max);
    if (!s->state[0])
        return err_invalid(e, "state names no directory");
    if ((s->machine_memory && s->machine_memory < 64 * MIB) ||
        (s->tenant_memory && s->tenant_memory < 64 * MIB))
        return err_set(e, SG_ERR_INVALID, -ERANGE,
                       "machine_memory and tenant_memory are 0, or 64M at least");
    r = check_domain(s->domain, e);
    return r < 0 ? r : check_listen(s, e);
}
