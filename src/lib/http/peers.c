/* How many connections each client address has. */
#include <arpa/inet.h>

#include "lib/http/impl.h"

#define BUCKETS 1024

struct peer_count {
    struct peer_count *next;
    struct in6_addr ip;
    unsigned n;
};

struct peer_count **peers_new(void)
{
    return xcalloc(BUCKETS, sizeof(struct peer_count *));
}

void peers_free(struct peer_count **peers)
{
    for (size_t i = 0; i < BUCKETS; i++) {
        while (peers[i]) {
            struct peer_count *p = peers[i];
            peers[i] = p->next;
            free(p);
        }
    }
    free(peers);
}

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

/* Points at the link to the address's entry, or at the end of its bucket. */
static struct peer_count **find(struct peer_count **peers, const struct in6_addr *key)
{
    uint32_t hash = 2166136261u;

    for (size_t i = 0; i < sizeof(key->s6_addr); i++)
        hash = (hash ^ key->s6_addr[i]) * 16777619u;
    struct peer_count **at = &peers[hash % BUCKETS];
    while (*at && memcmp(&(*at)->ip, key, sizeof(*key)) != 0)
        at = &(*at)->next;
    return at;
}

bool peers_enter(struct peer_count **peers, const struct in6_addr *ip, unsigned max)
{
    struct in6_addr key = key_of(ip);

    if (is_loopback(ip))
        return true;
    struct peer_count **at = find(peers, &key);
    if (!*at) {
        *at = xcalloc(1, sizeof(**at));
        (*at)->ip = key;
    }
    if ((*at)->n >= max)
        return false;
    (*at)->n++;
    return true;
}

void peers_leave(struct peer_count **peers, const struct in6_addr *ip)
{
    struct in6_addr key = key_of(ip);
    struct peer_count **at = find(peers, &key), *p = *at;

    if (is_loopback(ip) || !p || --p->n > 0)
        return;
    *at = p->next;
    free(p);
}
