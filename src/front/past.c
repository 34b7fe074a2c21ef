#include "front/past.h"

#include <string.h>

#include "base/clock.h"

struct past {
    struct past *next; /* the one that ended after it */
    char id[ID_LEN + 1], tenant[ID_LEN + 1];
    int64_t ended_ms;
    struct box_log log;
};

static struct {
    struct past *oldest, **newest;
    size_t bytes;
} kept;

static size_t size_of(const struct past *p)
{
    return sizeof *p + p->log.bytes;
}

static void drop_oldest(void)
{
    struct past *p = kept.oldest;

    kept.bytes -= size_of(p);
    kept.oldest = p->next;
    if (!kept.oldest)
        kept.newest = &kept.oldest;
    box_log_done(&p->log);
    free(p);
}

static void drop_old(void)
{
    int64_t limit = clock_wall_ms() - PAST_MS;

    while (kept.oldest && (kept.oldest->ended_ms < limit || kept.bytes > PAST_BYTES))
        drop_oldest();
}

void past_keep(struct box *b)
{
    struct past *p = xcalloc(1, sizeof *p);

    memcpy(p->id, b->id, sizeof p->id);
    memcpy(p->tenant, b->spec.tenant, sizeof p->tenant);
    p->ended_ms = clock_wall_ms();
    p->log = b->log;
    b->log = (struct box_log){0};
    if (!kept.newest)
        kept.newest = &kept.oldest;
    *kept.newest = p;
    kept.newest = &p->next;
    kept.bytes += size_of(p);
    drop_old();
}

const struct box_log *past_log(const char *tenant, const char *id)
{
    drop_old();
    for (struct past *p = kept.oldest; p; p = p->next)
        if (strcmp(p->id, id) == 0 && strcmp(p->tenant, tenant) == 0)
            return &p->log;
    return NULL;
}
