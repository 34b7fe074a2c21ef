/* Fake addresses, which stand for names. The address follows from the name, so a name mostly gets
 * the same one again after it was forgotten or the guard was restarted: an address that a program
 * has kept should not come to stand for another name. */
#include <string.h>

#include "guard/dns.h"

#define FAKES_MAX 4096
#define BUCKETS   1024u
#define BASE      0xc6120000u /* 198.18.0.0 */
#define RANGE     (1u << 17)  /* /15 */
#define OFFSETS   (RANGE - 2) /* without the first and the last address */

struct fake {
    struct fake *next_name, *next_offset; /* next in the same bucket, by name and by offset */
    struct fake *newer, *older;           /* neighbours by time of last use */
    uint32_t offset;
    char name[];
};

struct fakes {
    struct fake *by_name[BUCKETS], *by_offset[BUCKETS];
    struct fake *newest, *oldest;
    size_t n;
};

static uint32_t hash_of(const char *name)
{
    uint32_t h = 2166136261u;

    for (const char *c = name; *c; c++)
        h = (h ^ (uint8_t)*c) * 16777619u;
    return h ^ h >> 15;
}

static struct fake **find_name(struct fakes *f, const char *name)
{
    struct fake **at = &f->by_name[hash_of(name) % BUCKETS];

    while (*at && strcmp((*at)->name, name) != 0)
        at = &(*at)->next_name;
    return at;
}

static struct fake **find_offset(struct fakes *f, uint32_t offset)
{
    struct fake **at = &f->by_offset[offset % BUCKETS];

    while (*at && (*at)->offset != offset)
        at = &(*at)->next_offset;
    return at;
}

static void unlink_use(struct fakes *f, struct fake *x)
{
    *(x->newer ? &x->newer->older : &f->newest) = x->older;
    *(x->older ? &x->older->newer : &f->oldest) = x->newer;
    x->newer = x->older = NULL;
}

static void link_use(struct fakes *f, struct fake *x)
{
    x->older = f->newest;
    *(f->newest ? &f->newest->newer : &f->oldest) = x;
    f->newest = x;
}

static void forget(struct fakes *f, struct fake *x)
{
    *find_name(f, x->name) = x->next_name;
    *find_offset(f, x->offset) = x->next_offset;
    unlink_use(f, x);
    f->n--;
    free(x);
}

static struct fake *fake_new(struct fakes *f, const char *name)
{
    size_t size = strlen(name) + 1;
    struct fake *x, **at;
    uint32_t offset = hash_of(name) % OFFSETS + 1;

    if (f->n == FAKES_MAX)
        forget(f, f->oldest);
    while (*find_offset(f, offset))
        offset = offset % OFFSETS + 1;
    x = xcalloc(1, sizeof *x + size);
    x->offset = offset;
    memcpy(x->name, name, size);
    at = &f->by_name[hash_of(name) % BUCKETS];
    x->next_name = *at;
    *at = x;
    at = &f->by_offset[offset % BUCKETS];
    x->next_offset = *at;
    *at = x;
    link_use(f, x);
    f->n++;
    return x;
}

static void used(struct fakes *f, struct fake *x)
{
    unlink_use(f, x);
    link_use(f, x);
}

void fake_address(struct sandbox *s, const char *name, struct net_addr *ret)
{
    struct fake *x;

    if (!s->fakes)
        s->fakes = xcalloc(1, sizeof *s->fakes);
    x = *find_name(s->fakes, name);
    if (x)
        used(s->fakes, x);
    else
        x = fake_new(s->fakes, name);
    uint32_t a = BASE + x->offset;
    net_addr_v4((uint8_t[4]){(uint8_t)(a >> 24), (uint8_t)(a >> 16), (uint8_t)(a >> 8), (uint8_t)a},
                0, ret);
}

static uint32_t offset_of(const struct net_addr *a)
{
    return ((uint32_t)a->ip[12] << 24 | (uint32_t)a->ip[13] << 16 | (uint32_t)a->ip[14] << 8 |
            a->ip[15]) -
           BASE;
}

bool fake_is(const struct net_addr *a)
{
    return net_addr_is_v4(a) && offset_of(a) < RANGE;
}

const char *fake_name(struct sandbox *s, const struct net_addr *a)
{
    struct fake *x = s->fakes && fake_is(a) ? *find_offset(s->fakes, offset_of(a)) : NULL;

    if (!x)
        return NULL;
    used(s->fakes, x);
    return x->name;
}

void fakes_free(struct fakes *f)
{
    while (f && f->oldest)
        forget(f, f->oldest);
    free(f);
}
