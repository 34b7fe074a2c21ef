#include "front/core/ended_logs.h"

#include <string.h>

#include "lib/base/clock.h"

#define BUCKETS 4096

struct ended_logs {
    struct share *share;
    struct ended_logs *next; /* the tenant's next, which ended after it */
    struct ended_logs *next_in_bucket;
    char id[ID_LEN + 1];
    int64_t ended_ms;
    struct sandbox_end end;
    struct sandbox_log log;
};

struct share {
    struct share *next;
    char tenant[ID_LEN + 1];
    struct ended_logs *oldest, **newest;
    size_t bytes;
};

static struct share *shares;
static struct ended_logs *buckets[BUCKETS];
static size_t all_bytes;

static size_t size_of(const struct ended_logs *p)
{
    return sizeof *p + p->log.bytes;
}

static struct ended_logs **bucket_of(const char *id)
{
    uint32_t h = 2166136261u;

    for (; *id; id++)
        h = (h ^ (uint8_t)*id) * 16777619u;
    return &buckets[h % BUCKETS];
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
    struct ended_logs *p = s->oldest;

    s->bytes -= size_of(p);
    all_bytes -= size_of(p);
    s->oldest = p->next;
    if (!s->oldest)
        s->newest = &s->oldest;
    for (struct ended_logs **at = bucket_of(p->id); *at; at = &(*at)->next_in_bucket)
        if (*at == p) {
            *at = p->next_in_bucket;
            break;
        }
    sandbox_log_done(&p->log);
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
    int64_t limit = clock_wall_ms() - ENDED_LOGS_MS;

    for (struct share **at = &shares; *at;) {
        struct share *s = *at;

        while (s->oldest && (s->oldest->ended_ms < limit || s->bytes > ENDED_LOGS_BYTES))
            drop_oldest(s);
        if (s->oldest) {
            at = &s->next;
        } else {
            *at = s->next;
            free(s);
        }
    }
    while (all_bytes > ENDED_LOGS_BYTES_ALL)
        drop_oldest(largest());
}

void ended_logs_keep(const char *tenant, const char *id, const struct sandbox_end *end,
                     struct sandbox_log *log)
{
    struct ended_logs *p = xcalloc(1, sizeof *p), **bucket = bucket_of(id);
    struct share *s = share_find(tenant);

    if (!s)
        s = share_add(tenant);
    *p = (struct ended_logs){
        .share = s, .next_in_bucket = *bucket, .ended_ms = clock_wall_ms(), .end = *end};
    memcpy(p->id, id, sizeof p->id);
    p->log = *log;
    *log = (struct sandbox_log){0};
    *bucket = p;
    *s->newest = p;
    s->newest = &p->next;
    s->bytes += size_of(p);
    all_bytes += size_of(p);
    drop_old();
}

static const struct ended_logs *find(const char *tenant, const char *id)
{
    const struct ended_logs *p;

    drop_old();
    for (p = *bucket_of(id); p; p = p->next_in_bucket)
        if (strcmp(p->id, id) == 0 && (!tenant || strcmp(p->share->tenant, tenant) == 0))
            break;
    return p;
}

const struct sandbox_log *ended_logs_log(const char *tenant, const char *id)
{
    const struct ended_logs *p = find(tenant, id);

    return p ? &p->log : NULL;
}

const struct sandbox_end *ended_logs_end(const char *tenant, const char *id)
{
    const struct ended_logs *p = find(tenant, id);

    return p ? &p->end : NULL;
}
