#include "guard/dns_budget.h"

#include "guard/dns.h"
#include "lib/base/hash.h"

#define SECOND_NS 1000000000ull
#define MINUTE_S  60

_Static_assert(ARRAY_SIZE(((struct dns_budget *)0)->seen) == DNS_NAMES_PER_MINUTE,
               "as many names as may be asked for");

bool dns_budget_question(struct dns_budget *b, uint64_t now_ns)
{
    if (b->second != now_ns / SECOND_NS) {
        b->second = now_ns / SECOND_NS;
        b->asked = 0;
    }
    if (b->asked >= DNS_PER_SECOND)
        return false;
    b->asked++;
    return true;
}

bool dns_budget_name(struct dns_budget *b, const char *name, uint64_t now_ns)
{
    uint32_t hash = (uint32_t)hash_text(0, name), now = (uint32_t)(now_ns / SECOND_NS);
    struct dns_mark *room = NULL;

    for (size_t i = 0; i < ARRAY_SIZE(b->seen); i++) {
        struct dns_mark *m = &b->seen[i];

        if (m->until <= now)
            room = m;
        else if (m->hash == hash)
            return true;
    }
    if (!room)
        return false;
    *room = (struct dns_mark){hash, now + MINUTE_S + 1};
    return true;
}

/* Decisions that share a place of the table are on record more often, never less. */
bool dns_budget_tells(struct dns_budget *b, const char *what, const char *name, uint64_t now_ns)
{
    uint32_t hash = (uint32_t)hash_text(hash_text(0, what), name);
    uint32_t now = (uint32_t)(now_ns / SECOND_NS);
    struct dns_mark *m = &b->told[hash % ARRAY_SIZE(b->told)];

    if (m->hash == hash && m->until > now)
        return false;
    *m = (struct dns_mark){hash, now + MINUTE_S};
    return true;
}
