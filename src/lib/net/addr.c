/* Forms of addresses, and which of them belong to the internet. The lists follow the registries of
 * special addresses (RFC 6890 and later); docs/egress.md shows them. */
#include "lib/net/addr.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>

static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};

/* ---- forms ----------------------------------------------------------------------------------- */

void net_addr_v4(const uint8_t ip[4], uint16_t port, struct net_addr *ret)
{
    *ret = (struct net_addr){.port = port};
    memcpy(ret->ip, mapped, sizeof(mapped));
    memcpy(ret->ip + 12, ip, 4);
}

void net_addr_v6(const uint8_t ip[16], uint16_t port, struct net_addr *ret)
{
    *ret = (struct net_addr){.port = port};
    memcpy(ret->ip, ip, 16);
}

bool net_addr_is_v4(const struct net_addr *a)
{
    return memcmp(a->ip, mapped, sizeof(mapped)) == 0;
}

int net_addr_from(const struct sockaddr *sa, struct net_addr *ret)
{
    struct sockaddr_in in;
    struct sockaddr_in6 in6;
    uint8_t ip[16];

    switch (sa->sa_family) {
    case AF_INET:
        memcpy(&in, sa, sizeof(in));
        memcpy(ip, &in.sin_addr, 4);
        net_addr_v4(ip, ntohs(in.sin_port), ret);
        return 0;
    case AF_INET6:
        memcpy(&in6, sa, sizeof(in6));
        net_addr_v6(in6.sin6_addr.s6_addr, ntohs(in6.sin6_port), ret);
        return 0;
    default:
        return -EAFNOSUPPORT;
    }
}

socklen_t net_addr_to(const struct net_addr *a, struct sockaddr_storage *ret)
{
    struct sockaddr_in in = {.sin_family = AF_INET, .sin_port = htons(a->port)};
    struct sockaddr_in6 in6 = {.sin6_family = AF_INET6, .sin6_port = htons(a->port)};

    *ret = (struct sockaddr_storage){0};
    if (net_addr_is_v4(a)) {
        memcpy(&in.sin_addr, a->ip + 12, 4);
        memcpy(ret, &in, sizeof(in));
        return sizeof(in);
    }
    memcpy(&in6.sin6_addr, a->ip, 16);
    memcpy(ret, &in6, sizeof(in6));
    return sizeof(in6);
}

void net_addr_text(const struct net_addr *a, char ret[NET_ADDR_TEXT_MAX])
{
    bool v4 = net_addr_is_v4(a);

    if (!inet_ntop(v4 ? AF_INET : AF_INET6, v4 ? a->ip + 12 : a->ip, ret, NET_ADDR_TEXT_MAX))
        snprintf(ret, NET_ADDR_TEXT_MAX, "?");
}

int net_addr_parse(const char *text, struct net_addr *ret)
{
    uint8_t ip[16];

    if (inet_pton(AF_INET, text, ip) == 1)
        net_addr_v4(ip, 0, ret);
    else if (inet_pton(AF_INET6, text, ip) == 1)
        net_addr_v6(ip, 0, ret);
    else
        return -EINVAL;
    return 0;
}

bool net_addr_equal(const struct net_addr *a, const struct net_addr *b)
{
    return memcmp(a->ip, b->ip, sizeof(a->ip)) == 0;
}

/* ---- addresses that carry another ------------------------------------------------------------ */

bool net_addr_carried(const struct net_addr *a, struct net_addr *ret)
{
    static const uint8_t nat64[12] = {0x00, 0x64, 0xff, 0x9b};
    static const uint8_t nat64_local[6] = {0x00, 0x64, 0xff, 0x9b, 0x00, 0x01};
    static const uint8_t zero[12];

    /* The operator chooses the length of the local NAT64 prefix; /96 is in use everywhere, and the
     * whole range is internal anyway. :: and ::1 are not compatible addresses. */
    if (memcmp(a->ip, nat64, 12) == 0 || memcmp(a->ip, nat64_local, 6) == 0 ||
        (memcmp(a->ip, zero, 12) == 0 && (a->ip[12] || a->ip[13] || a->ip[14] || a->ip[15] > 1)))
        net_addr_v4(a->ip + 12, a->port, ret);
    else if (a->ip[0] == 0x20 && a->ip[1] == 0x02) /* 6to4 */
        net_addr_v4(a->ip + 2, a->port, ret);
    else
        return false;
    return true;
}

/* ---- addresses that are not the internet's --------------------------------------------------- */

#define INTERNAL "internal address: "

struct special {
    uint8_t ip[16]; /* IPv4 uses the first four bytes */
    uint8_t len;
    bool undialable;
    const char *what;
};

/* The first match gives the reason, so single addresses come before their networks. */
static const struct special special_v4[] = {
    {{169, 254, 169, 254}, 32, false, INTERNAL "cloud metadata"},
    {{100, 100, 100, 200}, 32, false, INTERNAL "cloud metadata"}, /* Alibaba */
    {{192, 0, 0, 192}, 32, false, INTERNAL "cloud metadata"},     /* Oracle */
    {{168, 63, 129, 16}, 32, false, INTERNAL "cloud metadata"},   /* Azure; its number is public */
    {{255, 255, 255, 255}, 32, true, INTERNAL "broadcast"},
    {{0}, 8, true, INTERNAL "unspecified"},
    {{10}, 8, false, INTERNAL "private network"},
    {{100, 64}, 10, false, INTERNAL "carrier network"},
    {{127}, 8, false, INTERNAL "loopback"},
    {{169, 254}, 16, false, INTERNAL "link-local"},
    {{172, 16}, 12, false, INTERNAL "private network"},
    {{192, 0, 0}, 24, false, INTERNAL "protocol assignments"},
    {{192, 0, 2}, 24, false, INTERNAL "documentation"},
    {{192, 88, 99}, 24, false, INTERNAL "6to4 relay"},
    {{192, 168}, 16, false, INTERNAL "private network"},
    {{198, 18}, 15, false, INTERNAL "benchmarking"},
    {{198, 51, 100}, 24, false, INTERNAL "documentation"},
    {{203, 0, 113}, 24, false, INTERNAL "documentation"},
    {{224}, 4, true, INTERNAL "multicast"},
    {{240}, 4, false, INTERNAL "reserved"},
};

static const struct special special_v6[] = {
    {{0}, 128, true, INTERNAL "unspecified"},
    {{[15] = 1}, 128, false, INTERNAL "loopback"},
    {{0}, 96, false, INTERNAL "IPv4-compatible"},
    {{0x00, 0x64, 0xff, 0x9b}, 96, false, INTERNAL "address translation"},
    {{0x00, 0x64, 0xff, 0x9b, 0x00, 0x01}, 48, false, INTERNAL "address translation"},
    {{0x01, 0x00}, 64, false, INTERNAL "discard-only"},
    {{0x20, 0x01, 0x0d, 0xb8}, 32, false, INTERNAL "documentation"},
    {{0x20, 0x01}, 23, false, INTERNAL "protocol assignments"}, /* Teredo is in it */
    {{0x20, 0x02}, 16, false, INTERNAL "6to4"},
    {{0x3f, 0xff}, 20, false, INTERNAL "documentation"},
    {{0x5f, 0x00}, 16, false, INTERNAL "segment routing"},
    {{0xfd, 0x00, 0x0e, 0xc2}, 32, false, INTERNAL "cloud metadata"}, /* Amazon */
    {{0xfd, 0x20, 0x00, 0xce}, 32, false, INTERNAL "cloud metadata"}, /* Google */
    {{0xfc}, 7, false, INTERNAL "private network"},
    {{0xfe, 0x80}, 10, false, INTERNAL "link-local"},
    {{0xfe, 0xc0}, 10, false, INTERNAL "site-local"},
    {{0xff}, 8, true, INTERNAL "multicast"},
};

static bool in_prefix(const uint8_t *ip, const uint8_t *prefix, unsigned len)
{
    unsigned whole = len / 8, rest = len % 8;

    return memcmp(ip, prefix, whole) == 0 &&
           (rest == 0 || ((ip[whole] ^ prefix[whole]) & (0xff00 >> rest & 0xff)) == 0);
}

static const struct special *find_special(const struct net_addr *a)
{
    /* Only 2000::/3 of IPv6 has been assigned. */
    static const struct special unassigned = {.what = INTERNAL "reserved"};
    bool v4 = net_addr_is_v4(a);
    const struct special *s = v4 ? special_v4 : special_v6;
    size_t n = v4 ? ARRAY_SIZE(special_v4) : ARRAY_SIZE(special_v6);

    for (size_t i = 0; i < n; i++)
        if (in_prefix(a->ip + (v4 ? 12 : 0), s[i].ip, s[i].len))
            return &s[i];
    return v4 || a->ip[0] >> 5 == 1 ? NULL : &unassigned;
}

/* Looks at an address and at the one that it carries; the reason of the carried one comes first. */
static const struct special *find_internal(const struct net_addr *a)
{
    struct net_addr carried;
    const struct special *s = net_addr_carried(a, &carried) ? find_special(&carried) : NULL;

    return s ? s : find_special(a);
}

const char *net_addr_refusal(const struct net_addr *a)
{
    const struct special *s = find_internal(a);

    return s ? s->what : NULL;
}

const char *net_addr_internal(const struct net_addr *a)
{
    const char *refusal = net_addr_refusal(a);

    return refusal ? refusal + strlen(INTERNAL) : NULL;
}

bool net_addr_undialable(const struct net_addr *a)
{
    const struct special *s = find_internal(a);

    return s && s->undialable;
}
