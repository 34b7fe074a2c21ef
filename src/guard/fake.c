/* Fake addresses, which stand for names. The address follows from the name, so a name mostly gets
 * the same one again after it was forgotten or the guard was restarted: an address that a program
 * has kept should not come to stand for another name. */

#include "guard/dns.h"

#define FAKES_MAX 4096
#define BASE      0xc6120000u /* 198.18.0.0 */
#define RANGE     (1u << 17)  /* /15 */
#define OFFSETS   (RANGE - 2) /* without the first and the last address */

struct fake {
    struct map_node by_name, by_offset;
    uint32_t offset;
    char name[];
};

struct fakes {
    struct map by_name; /* in the order of their last use */
    struct map by_offset;
};

static struct fake *find_name(const struct fakes *f, const char *name)
{
    return MAP_FIND(struct fake, x, &f->by_name, hash_text(0, name), by_name,
                    strcmp(x->name, name) == 0);
}

static struct fake *find_offset(const struct fakes *f, uint32_t offset)
{
    return MAP_FIND(struct fake, x, &f->by_offset, offset, by_offset, true);
}

static void forget(struct fakes *f, struct fake *x)
{
    map_remove(&f->by_name, &x->by_name);
    map_remove(&f->by_offset, &x->by_offset);
    free(x);
}

static struct fake *fake_new(struct fakes *f, const char *name)
{
    size_t size = strlen(name) + 1;
    struct fake *x = xcalloc(1, sizeof(*x) + size);

    if (f->by_name.n == FAKES_MAX)
        forget(f, MAP_FIRST(struct fake, &f->by_name, by_name));
    x->offset = (uint32_t)(hash_stable(0, name, size - 1) % OFFSETS) + 1;
    while (find_offset(f, x->offset))
        x->offset = x->offset % OFFSETS + 1;
    memcpy(x->name, name, size);
    map_add(&f->by_name, &x->by_name, hash_text(0, name));
    map_add(&f->by_offset, &x->by_offset, x->offset);
    return x;
}

void fake_address(struct sandbox *s, const char *name, struct net_addr *ret)
{
    struct fake *x;

    if (!s->fakes)
        s->fakes = xcalloc(1, sizeof(*s->fakes));
    x = find_name(s->fakes, name);
    if (x)
        map_renew(&s->fakes->by_name, &x->by_name);
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
    struct fake *x = s->fakes && fake_is(a) ? find_offset(s->fakes, offset_of(a)) : NULL;

    if (!x)
        return NULL;
    map_renew(&s->fakes->by_name, &x->by_name);
    return x->name;
}

void fakes_free(struct fakes *f)
{
    while (f && f->by_name.n > 0)
        forget(f, MAP_FIRST(struct fake, &f->by_name, by_name));
    free(f);
}
