#include "guard/cidr.h"

#include <endian.h>

#include "lib/text/parse.h"

struct bits {
    uint64_t w[2]; /* the first bit of an address is w[0]'s highest */
};

struct node {
    struct bits key;
    uint32_t child[2]; /* 0: none */
    uint8_t len;
    const char *value; /* NULL: the node is only a fork */
};

struct cidr_tree {
    struct node *nodes; /* nodes[0] is not used: 0 means none */
    uint32_t n, cap;
    uint32_t root[2]; /* [0] of IPv6, [1] of IPv4 */
};

static struct bits load(const uint8_t ip[16])
{
    struct bits b;

    memcpy(b.w, ip, sizeof(b.w));
    b.w[0] = be64toh(b.w[0]);
    b.w[1] = be64toh(b.w[1]);
    return b;
}

static unsigned bit_at(const struct bits *b, unsigned i)
{
    return b->w[i / 64] >> (63 - i % 64) & 1;
}

/* How many leading bits both have in common. */
static unsigned common(const struct bits *a, const struct bits *b)
{
    uint64_t high = a->w[0] ^ b->w[0], low = a->w[1] ^ b->w[1];

    if (high)
        return (unsigned)__builtin_clzll(high);
    return low ? 64 + (unsigned)__builtin_clzll(low) : 128;
}

/* ---- networks -------------------------------------------------------------------------------- */

void cidr_from_addr(const struct net_addr *a, unsigned len, struct cidr *ret)
{
    *ret = (struct cidr){.len = (uint8_t)len, .v4 = len >= 96 && net_addr_is_v4(a)};
    memcpy(ret->ip, a->ip, len / 8);
    if (len % 8)
        ret->ip[len / 8] = a->ip[len / 8] & (uint8_t)(0xff00 >> len % 8);
}

int cidr_parse(const char *text, struct cidr *ret)
{
    char address[NET_ADDR_TEXT_MAX + 1];
    size_t n = strcspn(text, "/");
    struct net_addr a;
    uint64_t len = 128;

    if (n >= sizeof(address))
        return -EINVAL;
    memcpy(address, text, n);
    address[n] = '\0';
    if (net_addr_parse(address, &a) < 0)
        return -EINVAL;
    if (text[n]) {
        bool dotted = !strchr(address, ':');

        /* One way to write a length: no leading zero. */
        if ((text[n + 1] == '0' && text[n + 2]) ||
            parse_u64("length", text + n + 1, 0, dotted ? 32 : 128, &len, NULL) < 0)
            return -EINVAL;
        len += dotted ? 96 : 0;
    }
    cidr_from_addr(&a, (unsigned)len, ret);
    return 0;
}

bool cidr_has(const struct cidr *c, const struct net_addr *a)
{
    struct bits net = load(c->ip), address = load(a->ip);

    return c->v4 == net_addr_is_v4(a) && common(&net, &address) >= c->len;
}

/* ---- the tree -------------------------------------------------------------------------------- */

struct cidr_tree *cidr_tree_new(void)
{
    return NEW(struct cidr_tree, .n = 1);
}

void cidr_tree_free(struct cidr_tree *t)
{
    if (t)
        free(t->nodes);
    free(t);
}

static uint32_t new_node(struct cidr_tree *t, const struct bits *key, unsigned len,
                         const char *value)
{
    t->nodes[t->n] = (struct node){.key = *key, .len = (uint8_t)len, .value = value};
    return t->n++;
}

/* Makes room for two nodes, the most that a network takes, so that nodes do not move while one is
 * added. */
static void reserve(struct cidr_tree *t)
{
    if (t->n + 2 <= t->cap)
        return;
    t->cap = t->cap ? t->cap * 2 : 8;
    t->nodes = xrealloc(t->nodes, t->cap, sizeof(*t->nodes));
}

/* Adds a key above the node at *at. They share `same` bits, fewer than the node has, so the key
 * becomes the node's parent, or its sibling below a new fork. */
static void add_above(struct cidr_tree *t, uint32_t *at, const struct bits *key, unsigned len,
                      unsigned same, const char *value)
{
    uint32_t old = *at;
    uint32_t above = new_node(t, key, same, same == len ? value : NULL);

    t->nodes[above].child[bit_at(&t->nodes[old].key, same)] = old;
    if (same < len)
        t->nodes[above].child[bit_at(key, same)] = new_node(t, key, len, value);
    *at = above;
}

void cidr_tree_add(struct cidr_tree *t, const struct cidr *c, const char *value)
{
    struct bits key = load(c->ip);
    uint32_t *at = &t->root[c->v4];

    reserve(t);
    while (*at) {
        struct node *node = &t->nodes[*at];
        unsigned same = common(&key, &node->key);

        if (same > c->len)
            same = c->len;
        if (same < node->len) {
            add_above(t, at, &key, c->len, same, value);
            return;
        }
        if (node->len == c->len) {
            if (!node->value)
                node->value = value;
            return;
        }
        at = &node->child[bit_at(&key, node->len)];
    }
    *at = new_node(t, &key, c->len, value);
}

const char *cidr_tree_find(const struct cidr_tree *t, const struct net_addr *a)
{
    struct bits key = load(a->ip);
    const char *found = NULL;

    for (uint32_t at = t->root[net_addr_is_v4(a)]; at;) {
        const struct node *node = &t->nodes[at];

        if (common(&key, &node->key) < node->len)
            break;
        if (node->value)
            found = node->value;
        if (node->len == 128)
            break;
        at = node->child[bit_at(&key, node->len)];
    }
    return found;
}
