#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>

#include "lib/audit/audit_impl.h"
#include "lib/base/clock.h"

struct audit_log {
    int dir; /* locked, so that only one process writes */
    struct audit_limits limits;
    struct audit_signer *signer;
    struct map table;
    struct list chains;
    struct audit_chain *top; /* the last one of the list, which belongs to no tenant */
    uint64_t seq;
    uint32_t top_file; /* number of the top chain's file that has notes of all others */
    uint64_t synced_ns;
    bool urgent, syncing;
};

/* ---- chains ---------------------------------------------------------------------------------- */

static int add_chain(struct audit_log *log, const char *tenant, struct audit_chain **ret,
                     struct sg_error *e)
{
    struct audit_chain *c;
    int r = audit_chain_open(log->dir, tenant, &log->table, &log->seq, &c, e);

    if (r < 0)
        return r;
    list_push(&log->chains, &c->link);
    *ret = c;
    return 0;
}

/* If a tenant's chain cannot be made, the record goes to the top chain: a misplaced record is
 * better than none. */
static struct audit_chain *chain_of(struct audit_log *log, const char *tenant)
{
    struct audit_chain *c;
    struct sg_error e;

    if (!tenant || !id_valid(tenant))
        return log->top;
    c = LIST_FIND(struct audit_chain, at, &log->chains, link, strcmp(at->tenant, tenant) == 0);
    if (c)
        return c;
    if (mkdirat(log->dir, tenant, 0700) < 0 && errno != EEXIST)
        return log->top;
    return add_chain(log, tenant, &c, &e) < 0 ? log->top : c;
}

static int open_chains(struct audit_log *log, struct sg_error *e)
{
    AUTO(free_p) char(*tenants)[ID_LEN + 1] = NULL;
    struct audit_chain *c;
    size_t n = 0;
    int r = add_chain(log, "", &log->top, e);

    if (r == 0)
        r = audit_tenants(log->dir, &tenants, &n, e);
    for (size_t i = 0; r == 0 && i < n; i++)
        r = add_chain(log, tenants[i], &c, e);
    return r;
}

/* ---- opening --------------------------------------------------------------------------------- */

static int open_directory(int dirfd, struct audit_log *log, struct sg_error *e)
{
    log->dir = openat(dirfd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (log->dir < 0)
        return err_errno(e, "open the directory of the record");
    if (flock(log->dir, LOCK_EX | LOCK_NB) < 0)
        return err_set(e, SG_ERR_GONE, -EBUSY, "another guard writes the record");
    return 0;
}

static void log_free(struct audit_log *log)
{
    LIST_EACH(struct audit_chain, c, &log->chains, link)
        audit_chain_free(c);
    audit_signer_free(log->signer);
    close_p(&log->dir);
    free(log);
}

int audit_open(int dirfd, const struct audit_limits *limits, struct audit_log **ret,
               struct sg_error *e)
{
    struct audit_log *log = NEW(struct audit_log, .limits = *limits, .dir = -1);
    int r;

    r = open_directory(dirfd, log, e);
    if (r == 0)
        r = audit_signer_open(log->dir, &log->signer, e);
    if (r == 0)
        r = open_chains(log, e);
    if (r < 0)
        log_free(log);
    else
        *ret = log;
    return r;
}

void audit_set_limits(struct audit_log *log, const struct audit_limits *limits)
{
    log->limits = *limits;
}

/* ---- writing --------------------------------------------------------------------------------- */

void audit_write(struct audit_log *log, const struct audit_record *r)
{
    log->urgent |=
        r->kind && r->verdict && strcmp(r->kind, "secret") == 0 && strcmp(r->verdict, "deny") == 0;
    audit_pending_add(&chain_of(log, r->tenant)->pending, r, clock_wall_ms());
}

/* Notes the head of this chain in the top chain. Once a minute is enough, and so no tenant can fill
 * the top chain. */
static void note_head(struct audit_log *log, struct audit_chain *c, bool now)
{
    const struct audit_head *h = &c->durable;
    char head[AUDIT_HASH_LEN + 32];
    struct audit_record r = {.kind = "chain", .name = c->tenant, .detail = head};
    uint64_t ns = clock_ns();

    if (h->seq == 0 || c->noted == h->seq ||
        (!now && c->noted > 0 && ns - c->noted_ns < AUDIT_HEAD_NS))
        return;
    snprintf(head, sizeof(head), "%llu:%s", (unsigned long long)h->seq, h->hash);
    audit_pending_add(&log->top->pending, &r, clock_wall_ms());
    c->noted = h->seq;
    c->noted_ns = ns;
}

static int flush_chain(struct audit_log *log, struct audit_chain *c, bool last)
{
    struct audit_writer w = {.limits = &log->limits, .signer = log->signer, .seq = &log->seq};
    uint64_t now = clock_ns();
    bool due = c->place.since_head > 0 && now - c->head_ns >= AUDIT_HEAD_NS;

    audit_pending_repeat(&c->pending, now, last);
    return audit_chain_flush(c, &w, last || due);
}

static int flush_tenants(struct audit_log *log, bool last)
{
    int r = 0;

    LIST_EACH(struct audit_chain, c, &log->chains, link) {
        int q = c == log->top ? 0 : flush_chain(log, c, last);

        r = r < 0 ? r : q;
    }
    return r;
}

static int flush_top(struct audit_log *log, bool last)
{
    int r;

    LIST_EACH(struct audit_chain, c, &log->chains, link)
        if (c != log->top)
            note_head(log, c, last);
    r = flush_chain(log, log->top, last);
    /* Notes are removed with the old files that hold them, so a new file notes all chains again. */
    if (r == 0 && log->top->newest != log->top_file) {
        LIST_EACH(struct audit_chain, c, &log->chains, link)
            c->noted = log->top_file > 0 ? 0 : c->noted;
        log->top_file = log->top->newest;
    }
    return r;
}

int audit_flush(struct audit_log *log)
{
    int r = flush_tenants(log, false), q = flush_top(log, false);

    return r < 0 ? r : q;
}

/* ---- syncing --------------------------------------------------------------------------------- */

struct audit_sync *audit_sync_begin(struct audit_log *log)
{
    uint64_t now = clock_ns();
    bool any = false;

    if (log->syncing || (!log->urgent && now - log->synced_ns < AUDIT_SYNC_NS))
        return NULL;
    LIST_EACH(struct audit_chain, c, &log->chains, link) {
        any |= c->unsynced;
        /* A chain that was not written to for a while needs no descriptors. */
        if (!c->unsynced && c->pending.wait.n == 0 && !c->torn)
            audit_chain_rest(c);
    }
    if (!any)
        return NULL;
    log->synced_ns = now;
    log->urgent = false;
    log->syncing = true;
    return audit_sync_new(&log->chains);
}

void audit_synced(struct audit_log *log, int r)
{
    log->syncing = false;
    LIST_EACH(struct audit_chain, c, &log->chains, link) {
        c->unsynced |= r < 0 && c->fd >= 0;
        c->durable = r < 0 ? c->durable : c->syncing;
    }
}

static void sync_now(struct audit_log *log)
{
    struct audit_sync *s = audit_sync_new(&log->chains);

    audit_sync_run(s);
    audit_sync_end(log, s);
}

void audit_close(struct audit_log *log)
{
    if (!log)
        return;
    flush_tenants(log, true);
    sync_now(log);
    flush_top(log, true);
    sync_now(log);
    log_free(log);
}
