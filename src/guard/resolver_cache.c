#include "guard/resolver_cache.h"

#include <string.h>

#include "guard/dns_names.h"

#define BUCKETS 4096

struct entry {
    struct entry *next;          /* next in the same bucket */
    struct entry *newer, *older; /* neighbours by time of last use */
    uint64_t hash, until_ns;
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
    struct entry *buckets[BUCKETS];
    struct entry *newest, *oldest;
    size_t n, bytes;
};

struct resolver_cache *resolver_cache_new(void)
{
    return xcalloc(1, sizeof(struct resolver_cache));
}

static struct entry **find(struct resolver_cache *c, const char *name, uint16_t type, uint64_t hash)
{
    struct entry **at = &c->buckets[hash % BUCKETS];

    while (*at && ((*at)->hash != hash || (*at)->type != type || strcmp((*at)->name, name) != 0))
        at = &(*at)->next;
    return at;
}

static void unlink_use(struct resolver_cache *c, struct entry *e)
{
    *(e->newer ? &e->newer->older : &c->newest) = e->older;
    *(e->older ? &e->older->newer : &c->oldest) = e->newer;
    e->newer = e->older = NULL;
}

static void link_use(struct resolver_cache *c, struct entry *e)
{
    e->older = c->newest;
    *(c->newest ? &c->newest->newer : &c->oldest) = e;
    c->newest = e;
}

static void drop(struct resolver_cache *c, struct entry **at)
{
    struct entry *e = *at;

    *at = e->next;
    unlink_use(c, e);
    c->n--;
    c->bytes -= e->size;
    free(e);
}

void resolver_cache_free(struct resolver_cache *c)
{
    if (!c)
        return;
    for (struct entry *e = c->newest, *older; e; e = older) {
        older = e->older;
        free(e);
    }
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
    uint64_t hash = dns_name_hash(name, type);
    struct entry **at = find(c, name, type, hash), *e;
    uint32_t ttl = a ? resolver_cache_ttl(a) : RESOLVER_TTL_MIN;

    if (*at)
        drop(c, at);
    e = entry_new(name, a);
    e->hash = hash;
    e->type = type;
    e->r = r;
    e->rcode = a ? a->rcode : DNS_SERVFAIL;
    e->until_ns = now_ns + ttl * 1000000000ull;
    while (c->oldest &&
           (c->n >= RESOLVER_CACHE_ENTRIES || c->bytes + e->size > RESOLVER_CACHE_BYTES))
        drop(c, find(c, c->oldest->name, c->oldest->type, c->oldest->hash));
    at = &c->buckets[hash % BUCKETS];
    e->next = *at;
    *at = e;
    link_use(c, e);
    c->n++;
    c->bytes += e->size;
}

bool resolver_cache_get(struct resolver_cache *c, const char *name, uint16_t type, uint64_t now_ns,
                        int *ret_r, struct dns_answer *ret)
{
    struct entry **at = find(c, name, type, dns_name_hash(name, type)), *e = *at;
    size_t used = 0;

    if (!e)
        return false;
    if (e->until_ns <= now_ns) {
        drop(c, at);
        return false;
    }
    unlink_use(c, e);
    link_use(c, e);
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
        snprintf(to->name, sizeof to->name, "%s", from->name);
        used += from->len;
    }
    return true;
}
