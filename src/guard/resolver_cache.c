#include "guard/resolver_cache.h"

#include "lib/base/map.h"

struct entry {
    struct map_node node;
    uint64_t until_ns;
    size_t size;
    int r;
    uint16_t type;
    uint8_t rcode;
    size_t n;
    char *name;
    struct entry_record *records; /* n records; their names and data follow them */
};

struct entry_record {
    uint16_t type, len;
    const char *name;
    const uint8_t *data;
};

struct resolver_cache {
    struct map entries; /* in the order of their last use */
    size_t bytes;
};

struct resolver_cache *resolver_cache_new(void)
{
    return xcalloc(1, sizeof(struct resolver_cache));
}

static struct entry *find(struct resolver_cache *c, const char *name, uint16_t type)
{
    return MAP_FIND(struct entry, e, &c->entries, hash_text(type, name), node,
                    e->type == type && strcmp(e->name, name) == 0);
}

static void drop(struct resolver_cache *c, struct entry *e)
{
    map_remove(&c->entries, &e->node);
    c->bytes -= e->size;
    free(e);
}

void resolver_cache_free(struct resolver_cache *c)
{
    if (!c)
        return;
    MAP_EACH(struct entry, e, &c->entries, node)
        drop(c, e);
    free(c);
}

uint32_t resolver_cache_ttl(const struct dns_answer *a)
{
    uint32_t ttl = a->n > 0 ? RESOLVER_TTL_MAX : RESOLVER_TTL_MIN;

    for (size_t i = 0; i < a->n; i++)
        if (a->records[i].ttl < ttl)
            ttl = a->records[i].ttl;
    return ttl < RESOLVER_TTL_MIN ? RESOLVER_TTL_MIN : ttl;
}

/* Makes an entry in one allocation: the entry, its records, their names and data, the name. */
static struct entry *entry_new(const char *name, const struct dns_answer *a)
{
    size_t n = a ? a->n : 0, records = n * sizeof(struct entry_record);
    size_t size = sizeof(struct entry) + records + strlen(name) + 1;

    for (size_t i = 0; i < n; i++)
        size += a->records[i].len + strlen(a->records[i].name) + 1;
    struct entry *e = xcalloc(1, size);
    char *at = (char *)(e + 1) + records;

    e->size = size;
    e->n = n;
    e->records = (struct entry_record *)(e + 1);
    for (size_t i = 0; i < n; i++) {
        const struct dns_record *r = &a->records[i];
        size_t name_size = strlen(r->name) + 1;

        memcpy(at, r->name, name_size);
        memcpy(at + name_size, r->data, r->len);
        e->records[i] = (struct entry_record){
            .type = r->type, .len = r->len, .name = at, .data = (const uint8_t *)at + name_size};
        at += name_size + r->len;
    }
    e->name = memcpy(at, name, strlen(name) + 1);
    return e;
}

void resolver_cache_put(struct resolver_cache *c, const char *name, uint16_t type, int r,
                        const struct dns_answer *a, uint64_t now_ns)
{
    struct entry *e = find(c, name, type);
    uint32_t ttl = a ? resolver_cache_ttl(a) : RESOLVER_TTL_MIN;

    if (e)
        drop(c, e);
    e = entry_new(name, a);
    e->type = type;
    e->r = r;
    e->rcode = a ? a->rcode : DNS_SERVFAIL;
    e->until_ns = now_ns + ttl * 1000000000ull;
    while (c->entries.n > 0 &&
           (c->entries.n >= RESOLVER_CACHE_ENTRIES || c->bytes + e->size > RESOLVER_CACHE_BYTES))
        drop(c, MAP_FIRST(struct entry, &c->entries, node));
    map_add(&c->entries, &e->node, hash_text(type, name));
    c->bytes += e->size;
}

bool resolver_cache_get(struct resolver_cache *c, const char *name, uint16_t type, uint64_t now_ns,
                        int *ret_r, struct dns_answer *ret)
{
    struct entry *e = find(c, name, type);
    size_t used = 0;

    if (!e)
        return false;
    if (e->until_ns <= now_ns) {
        drop(c, e);
        return false;
    }
    map_renew(&c->entries, &e->node);
    *ret_r = e->r;
    ret->rcode = e->rcode;
    ret->truncated = false;
    ret->n = e->n;
    for (size_t i = 0; i < e->n; i++) {
        const struct entry_record *from = &e->records[i];
        struct dns_record *to = &ret->records[i];

        to->type = from->type;
        to->len = from->len;
        to->ttl = (uint32_t)((e->until_ns - now_ns + 999999999) / 1000000000);
        to->data = memcpy(ret->store + used, from->data, from->len);
        snprintf(to->name, sizeof(to->name), "%s", from->name);
        used += from->len;
    }
    return true;
}
