#include "guard/learned.h"

#define SLOTS 256 /* a newer address takes the place of an older one */

struct learned {
    struct {
        struct net_addr address;
        char *name;
    } slots[SLOTS];
};

static size_t slot_of(const struct net_addr *a)
{
    return hash_bytes(0, a->ip, sizeof(a->ip)) % SLOTS;
}

void learned_note(struct sandbox *s, const char *name, const struct net_addr *a)
{
    size_t at = slot_of(a);

    if (!s->learned)
        s->learned = xcalloc(1, sizeof(*s->learned));
    if (s->learned->slots[at].name && strcmp(s->learned->slots[at].name, name) == 0 &&
        net_addr_equal(&s->learned->slots[at].address, a))
        return;
    free(s->learned->slots[at].name);
    s->learned->slots[at].name = xstrdup(name);
    s->learned->slots[at].address = *a;
}

const char *learned_name(const struct sandbox *s, const struct net_addr *a)
{
    size_t at = slot_of(a);

    if (!s->learned || !s->learned->slots[at].name ||
        !net_addr_equal(&s->learned->slots[at].address, a))
        return NULL;
    return s->learned->slots[at].name;
}

void learned_free(struct learned *l)
{
    for (size_t i = 0; l && i < SLOTS; i++)
        free(l->slots[i].name);
    free(l);
}
