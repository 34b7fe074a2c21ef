/* How many connections each client address has. */
#include <arpa/inet.h>

#include "lib/http/impl.h"

struct peer_count {
    struct map_node node;
    struct in6_addr ip;
    unsigned n;
};

static void set_v4(struct in6_addr *ip, struct in_addr v4)
{
    *ip = (struct in6_addr){.s6_addr = {[10] = 0xff, [11] = 0xff}};
    memcpy(&ip->s6_addr[12], &v4, sizeof(v4));
}

void peer_read(struct http_conn *c, const struct sockaddr *addr)
{
    struct sockaddr_in in4;
    struct sockaddr_in6 in6;

    if (addr && addr->sa_family == AF_INET) {
        memcpy(&in4, addr, sizeof(in4));
        set_v4(&c->ip, in4.sin_addr);
    } else if (addr && addr->sa_family == AF_INET6) {
        memcpy(&in6, addr, sizeof(in6));
        c->ip = in6.sin6_addr;
    } else {
        c->ip = in6addr_loopback;
    }
    if (IN6_IS_ADDR_V4MAPPED(&c->ip))
        inet_ntop(AF_INET, &c->ip.s6_addr[12], c->peer, sizeof(c->peer));
    else
        inet_ntop(AF_INET6, &c->ip, c->peer, sizeof(c->peer));
}

static bool is_loopback(const struct in6_addr *ip)
{
    return IN6_IS_ADDR_LOOPBACK(ip) || (IN6_IS_ADDR_V4MAPPED(ip) && ip->s6_addr[12] == 127);
}

/* IPv6 addresses count by their /64, since whoever has one address of it has them all. */
static struct in6_addr key_of(const struct in6_addr *ip)
{
    struct in6_addr key = *ip;

    if (!IN6_IS_ADDR_V4MAPPED(ip))
        memset(&key.s6_addr[8], 0, 8);
    return key;
}

static struct peer_count *find(const struct map *peers, const struct in6_addr *key)
{
    return MAP_FIND(struct peer_count, p, peers, hash_bytes(0, key, sizeof(*key)), node,
                    memcmp(&p->ip, key, sizeof(*key)) == 0);
}

bool peers_enter(struct map *peers, const struct in6_addr *ip, unsigned max)
{
    struct in6_addr key = key_of(ip);
    struct peer_count *p;

    if (is_loopback(ip))
        return true;
    p = find(peers, &key);
    if (!p) {
        p = NEW(struct peer_count, .ip = key);
        map_add(peers, &p->node, hash_bytes(0, &key, sizeof(key)));
    }
    if (p->n >= max)
        return false;
    p->n++;
    return true;
}

void peers_leave(struct map *peers, const struct in6_addr *ip)
{
    struct in6_addr key = key_of(ip);
    struct peer_count *p = find(peers, &key);

    if (is_loopback(ip) || !p || --p->n > 0)
        return;
    map_remove(peers, &p->node);
    free(p);
}
