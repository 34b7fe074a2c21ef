#include "lib/settings/address.h"

#include <arpa/inet.h>
#include <netinet/in.h>

#include "lib/text/parse.h"

static int refuse(const char *what, const char *text, struct sg_error *e)
{
    return err_set(e, SG_ERR_INVALID, -EINVAL,
                   "%s '%.64s' is not an address: use for example 127.0.0.1:3000 or [::1]:3000",
                   what, text);
}

static bool set_ipv4(struct address *a, const char *host, uint16_t port)
{
    struct sockaddr_in in = {.sin_family = AF_INET, .sin_port = htons(port)};

    if (inet_pton(AF_INET, strcmp(host, "localhost") == 0 ? "127.0.0.1" : host, &in.sin_addr) != 1)
        return false;
    *a = (struct address){.len = sizeof(in), .loopback = ntohl(in.sin_addr.s_addr) >> 24 == 127};
    memcpy(&a->addr, &in, sizeof(in));
    return true;
}

static bool set_ipv6(struct address *a, const char *host, uint16_t port)
{
    struct sockaddr_in6 in = {.sin6_family = AF_INET6, .sin6_port = htons(port)};

    if (inet_pton(AF_INET6, host, &in.sin6_addr) != 1)
        return false;
    *a = (struct address){.len = sizeof(in), .loopback = IN6_IS_ADDR_LOOPBACK(&in.sin6_addr)};
    memcpy(&a->addr, &in, sizeof(in));
    return true;
}

int address_parse(const char *what, const char *text, struct address *ret, struct sg_error *e)
{
    char host[ADDRESS_TEXT_MAX];
    const char *colon = strrchr(text, ':');
    size_t n = colon ? (size_t)(colon - text) : 0;
    bool bracket = n > 2 && text[0] == '[' && text[n - 1] == ']';
    struct address a;
    uint64_t port;

    if (n == 0 || n >= sizeof(host))
        return refuse(what, text, e);
    snprintf(host, sizeof(host), "%.*s", (int)(bracket ? n - 2 : n), bracket ? text + 1 : text);
    if (parse_u64(what, colon + 1, 0, 65535, &port, NULL) < 0 ||
        !(bracket ? set_ipv6(&a, host, (uint16_t)port) : set_ipv4(&a, host, (uint16_t)port)))
        return refuse(what, text, e);
    *ret = a;
    return 0;
}

int address_next(const char *what, const char **cursor, struct address *ret, struct sg_error *e)
{
    char one[ADDRESS_TEXT_MAX];
    const char *p = *cursor + strspn(*cursor, ", \t");
    size_t n = strcspn(p, ", \t");
    int r;

    if (n == 0)
        return 0;
    if (n >= sizeof(one))
        return refuse(what, p, e);
    memcpy(one, p, n);
    one[n] = '\0';
    r = address_parse(what, one, ret, e);
    if (r < 0)
        return r;
    *cursor = p + n;
    return 1;
}
