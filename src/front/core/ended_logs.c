#include "front/core/ended_logs.h"

#include <string.h>

#include "lib/base/clock.h"
#include "front/core/journal.h"

struct ended_logs {
    struct share *share;
    struct list in_share;
    struct map_node by_id;
    char id[ID_LEN + 1];
    int64_t ended_ms;
    struct sandbox_end end;
    struct sandbox_log log;
};

struct share {
    struct list link;
    char tenant[ID_LEN + 1];
    struct list logs; /* the oldest first */
    size_t bytes;
};

static struct list shares;
static struct map by_id;
static size_t all_bytes;

static size_t size_of(const struct ended_logs *p)
{
    return sizeof(*p) + p->log.bytes;
}

static struct share *share_of(const char *tenant)
{
    struct share *s = LIST_FIND(struct share, at, &shares, link, strcmp(at->tenant, tenant) == 0);

    if (!s) {
        s = xcalloc(1, sizeof(*s));
        memcpy(s->tenant, tenant, sizeof(s->tenant));
        list_push(&shares, &s->link);
    }
    return s;
}

static struct ended_logs *oldest(const struct share *s)
{
    return LIST_FIRST(struct ended_logs, &s->logs, in_share);
}

static void drop_oldest(struct share *s)
{
    struct ended_logs *p = oldest(s);

    s->bytes -= size_of(p);
    all_bytes -= size_of(p);
    list_remove(&p->in_share);
    map_remove(&by_id, &p->by_id);
    sandbox_log_done(&p->log);
    free(p);
}

static struct share *largest(void)
{
    struct share *found = NULL;

    LIST_EACH(struct share, s, &shares, link)
        if (!found || s->bytes > found->bytes)
            found = s;
    return found;
}

static void drop_old(void)
{
    int64_t limit = clock_wall_ms() - ENDED_LOGS_MS;

    LIST_EACH(struct share, s, &shares, link) {
        while (oldest(s) && (oldest(s)->ended_ms < limit || s->bytes > ENDED_LOGS_BYTES))
            drop_oldest(s);
        if (!oldest(s)) {
            list_remove(&s->link);
            free(s);
        }
    }
    while (all_bytes > ENDED_LOGS_BYTES_ALL)
        drop_oldest(largest());
}

static struct ended_log told(const struct ended_logs *p)
{
    return (struct ended_log){.tenant = p->share->tenant,
                              .id = p->id,
                              .ended_ms = p->ended_ms,
                              .end = &p->end,
                              .log = &p->log};
}

void ended_logs_restore(const char *tenant, const char *id, const struct sandbox_end *end,
                        struct sandbox_log *log, int64_t ended_ms)
{
    struct share *s = share_of(tenant);
    struct ended_logs *p =
        NEW(struct ended_logs, .share = s, .ended_ms = ended_ms, .end = *end, .log = *log);

    memcpy(p->id, id, sizeof(p->id));
    *log = (struct sandbox_log){0};
    map_add(&by_id, &p->by_id, hash_text(0, id));
    list_append(&s->logs, &p->in_share);
    s->bytes += size_of(p);
    all_bytes += size_of(p);
    drop_old();
}

void ended_logs_keep(const char *tenant, const char *id, const struct sandbox_end *end,
                     struct sandbox_log *log)
{
    const struct ended_log l = {
        .tenant = tenant, .id = id, .ended_ms = clock_wall_ms(), .end = end};

    ended_logs_restore(tenant, id, end, log, l.ended_ms);
    journal_ended(&l);
}

void ended_logs_each(bool (*fn)(const struct ended_log *l, void *arg), void *arg)
{
    LIST_EACH(struct share, s, &shares, link)
        LIST_EACH(const struct ended_logs, p, &s->logs, in_share) {
            const struct ended_log l = told(p);

            if (!fn(&l, arg))
                return;
        }
}

static const struct ended_logs *find(const char *tenant, const char *id)
{
    drop_old();
    return MAP_FIND(const struct ended_logs, p, &by_id, hash_text(0, id), by_id,
                    strcmp(p->id, id) == 0 && (!tenant || strcmp(p->share->tenant, tenant) == 0));
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
