#include "front/past.h"

#include <string.h>

#include "base/clock.h"

struct past {
    struct past *next; /* of the same tenant, the one that ended after it */
    char id[ID_LEN + 1];
    int64_t ended_ms;
    struct box_log log;
};

struct share {
    struct share *next;
    char tenant[ID_LEN + 1];
    struct past *oldest, **newest;
    size_t bytes;
};

static struct share *shares;
static size_t all_bytes;

static size_t size_of(const struct past *p)
{
    return sizeof *p + p->log.bytes;
}

static struct share *share_find(const char *tenant)
{
    struct share *s = shares;

    while (s && strcmp(s->tenant, tenant) != 0)
        s = s->next;
    return s;
}

static struct share *share_add(const char *tenant)
{
    struct share *s = xcalloc(1, sizeof *s);

    memcpy(s->tenant, tenant, sizeof s->tenant);
    s->newest = &s->oldest;
    s->next = shares;
    shares = s;
    return s;
}

static void drop_oldest(struct share *s)
{
    struct past *p = s->oldest;

    s->bytes -= size_of(p);
    all_bytes -= size_of(p);
    s->oldest = p->next;
    if (!s->oldest)
        s->newest = &s->oldest;
    box_log_done(&p->log);
    free(p);
}

static struct share *largest(void)
{
    struct share *found = shares;

    for (struct share *s = shares; s; s = s->next)
        if (s->bytes > found->bytes)
            found = s;
    return found;
}

static void drop_old(void)
{
    int64_t limit = clock_wall_ms() - PAST_MS;

    for (struct share **at = &shares; *at;) {
        struct share *s = *at;

        while (s->oldest && (s->oldest->ended_ms < limit || s->bytes > PAST_BYTES))
            drop_oldest(s);
        if (s->oldest) {
            at = &s->next;
        } else {
            *at = s->next;
            free(s);
        }
    }
    while (all_bytes > PAST_BYTES_ALL)
        drop_oldest(largest());
}

void past_keep(struct box *b)
{
    struct past *p = xcalloc(1, sizeof *p);
    struct share *s = share_find(b->spec.tenant);

    if (!s)
        s = share_add(b->spec.tenant);
    memcpy(p->id, b->id, sizeof p->id);
    p->ended_ms = clock_wall_ms();
    p->log = b->log;
    b->log = (struct box_log){0};
    *s->newest = p;
    s->newest = &p->next;
    s->bytes += size_of(p);
    all_bytes += size_of(p);
    drop_old();
}

const struct box_log *past_log(const char *tenant, const char *id)
{
    const struct share *s;

    drop_old();
    s = share_find(tenant);
    for (const struct past *p = s ? s->oldest : NULL; p; p = p->next)
        if (strcmp(p->id, id) == 0)
            return &p->log;
    return NULL;
}
