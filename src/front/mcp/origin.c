#include "front/mcp/origin.h"

#include <string.h>
#include <strings.h>

/* The host of "scheme://host[:port]", with brackets if it is an IPv6 address. */
static bool host_of(const char *url, const char **ret, size_t *ret_len)
{
    const char *host = strstr(url, "://");

    if (!host || (strncasecmp(url, "http://", 7) != 0 && strncasecmp(url, "https://", 8) != 0))
        return false;
    host += 3;
    if (strpbrk(host, "@\\"))
        return false;
    const char *close = host[0] == '[' ? strchr(host, ']') : NULL;
    *ret = host;
    *ret_len = close ? (size_t)(close + 1 - host) : strcspn(host, ":/");
    return *ret_len > 0 && (host[*ret_len] == '\0' || strchr(":/", host[*ret_len]));
}

static bool same(const char *host, size_t len, const char *name, size_t name_len)
{
    return len == name_len && len > 0 && strncasecmp(host, name, len) == 0;
}

static bool is_this_machine(const char *host, size_t len)
{
    static const char *const names[] = {"localhost", "127.0.0.1", "[::1]"};

    for (size_t i = 0; i < ARRAY_SIZE(names); i++)
        if (same(host, len, names[i], strlen(names[i])))
            return true;
    return false;
}

bool origin_allowed(const struct settings *s, const char *origin)
{
    const char *host, *ours;
    size_t len, ours_len = strcspn(s->domain, ":");

    if (!host_of(origin, &host, &len))
        return false;
    if (is_this_machine(host, len) || same(host, len, s->domain, ours_len))
        return true;
    /* The API of a domain is at api.DOMAIN. All other names below the domain are sandboxes, with
     * pages of strangers. */
    if (len > 4 && strncasecmp(host, "api.", 4) == 0 &&
        same(host + 4, len - 4, s->domain, ours_len))
        return true;
    return host_of(s->public_url, &ours, &ours_len) && same(host, len, ours, ours_len);
}
