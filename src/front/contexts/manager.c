#include <string.h>

#include "lib/base/clock.h"
#include "front/contexts/impl.h"
#include "lib/log/log.h"
#include "lib/vault/vault.h"

#define GRACE_MS   60000
#define TTL_MAX_MS (3650ull * 86400 * 1000) /* the settings' maximum; a database may say anything */

/* ---- the table ------------------------------------------------------------------------------- */

static uint64_t hash_of(const char *tenant, const char *conversation, const char *path)
{
    return hash_text(hash_text(hash_text(0, tenant), conversation), path);
}

struct context *contexts_find(struct front *f, const char *tenant, const char *conversation,
                              const char *path)
{
    return MAP_FIND(struct context, c, &f->contexts->all, hash_of(tenant, conversation, path),
                    by_path,
                    strcmp(c->tenant, tenant) == 0 && strcmp(c->conversation, conversation) == 0 &&
                        strcmp(c->path, path) == 0);
}

struct context *contexts_find_or_add(struct front *f, const char *tenant, const char *conversation,
                                     const char *path)
{
    struct context *c = contexts_find(f, tenant, conversation, path);

    if (c)
        return c;
    c = NEW(struct context, .front = f);
    snprintf(c->tenant, sizeof(c->tenant), "%s", tenant);
    snprintf(c->conversation, sizeof(c->conversation), "%s", conversation);
    snprintf(c->path, sizeof(c->path), "%s", path);
    map_add(&f->contexts->all, &c->by_path, hash_of(tenant, conversation, path));
    return c;
}

void context_drop_if_idle(struct context *c)
{
    if (c->sandbox || !list_empty(&c->waiters) || c->telling || c->checking ||
        c->step != OBTAIN_NONE)
        return;
    map_remove(&c->front->contexts->all, &c->by_path);
    free(c);
}

/* ---- the sandbox of a context ---------------------------------------------------------------- */

void context_detach(struct context *c)
{
    struct sandbox *b = steal_ptr(&c->sandbox);

    if (!b)
        return;
    b->context = NULL;
    b->conversation = b->path = NULL;
    sandbox_unref(b);
}

void context_kill_sandbox(struct context *c)
{
    struct sandbox *b = c->sandbox;

    if (!b)
        return;
    sandbox_ref(b);
    context_detach(c);
    sandbox_kill(b, NULL, NULL);
    sandbox_unref(b);
}

void context_attach(struct context *c, struct sandbox *b)
{
    if (c->sandbox == b)
        return;
    context_kill_sandbox(c);
    c->sandbox = sandbox_ref(b);
    b->context = c;
    b->conversation = c->conversation;
    b->path = c->path;
}

bool context_used(const struct context *c)
{
    const struct sandbox *b = c->sandbox;

    return b && (sandbox_in_use(b) || b->used_ns > c->told_ns || b->state == SANDBOX_PAUSED);
}

/* A sandbox ended although its row is active: the next caller gets another one. */
static void on_sandbox_ended(struct sandbox *b)
{
    struct context *c = b->context;

    if (!c) {
        explorations_sandbox_ended(b);
        return;
    }
    context_detach(c);
    lost_tell(c, b);
    context_drop_if_idle(c);
}

void context_tell(struct front *f, enum event_kind kind, const struct ctx_row *row,
                  const char *reason)
{
    event_emit(f, kind,
               &(struct event_about){.tenant = row->tenant,
                                     .sandbox_id = row->sandbox_id[0] ? row->sandbox_id : NULL,
                                     .context = row->id,
                                     .conversation = row->conversation,
                                     .path = row->path,
                                     .reason = reason});
}

void context_end_sandbox(struct front *f, const struct ctx_row *row, sandbox_done done, void *arg)
{
    struct sandbox *b = row->sandbox_id[0] ? sandbox_find(f, row->sandbox_id) : NULL;

    explorations_end(f, row->id);
    /* The sandbox must also name the row: the word of a database is not enough to end a sandbox. */
    if (!b || strcmp(b->spec.context, row->id) != 0) {
        if (done)
            done(arg, NULL, 0, NULL);
        return;
    }
    struct context *c = b->context;
    sandbox_ref(b);
    if (c) {
        context_detach(c);
        context_drop_if_idle(c);
    }
    sandbox_kill(b, done, arg);
    sandbox_unref(b);
}

uint64_t context_life_ms(const struct context *c)
{
    uint64_t ttl_ms = c->row.ttl_ms < TTL_MAX_MS ? c->row.ttl_ms : TTL_MAX_MS;

    return ttl_ms + c->front->settings.reap_every_ms + GRACE_MS;
}

void context_move_deadline(struct context *c)
{
    const uint64_t slack_ns = 5ull * 1000 * 1000 * 1000;
    uint64_t ms = context_life_ms(c);
    uint64_t deadline = clock_ns() + ms * 1000000ull;

    /* The deadline is moved only by more than 5 seconds, to spare an order for each use; the grace
     * period has room for that. */
    if (c->sandbox && c->sandbox->state == SANDBOX_RUNNING &&
        (deadline > c->sandbox->deadline_ns + slack_ns ||
         c->sandbox->deadline_ns > deadline + slack_ns))
        sandbox_set_timeout(c->sandbox, ms, false, NULL, NULL);
}

void context_keep_deadline(struct context *c)
{
    uint64_t end_ns = c->told_ns + (context_life_ms(c) - GRACE_MS) * 1000000ull;

    if (c->sandbox && c->sandbox->deadline_ns < end_ns)
        context_move_deadline(c);
}

/* If the store was unreachable, the other servers could not reach it either. They are not taken for
 * dead until they had time to report to it again. */
bool contexts_know_the_dead(const struct contexts *t)
{
    return !t->back_ns || clock_ns() - t->back_ns > CTX_NODE_DEAD_MS * 1000000ull;
}

/* Checks a URL from the database, which may say anything: clients are sent there. */
static bool is_address(const char *url)
{
    if (strncmp(url, "http://", 7) != 0 && strncmp(url, "https://", 8) != 0)
        return false;
    for (const char *p = url; *p; p++)
        if (*p <= ' ' || *p > '~')
            return false;
    return true;
}

bool context_is_elsewhere(struct front *f, const struct ctx_row *row, struct context_answer *a,
                          struct sg_error *e)
{
    const struct contexts *t = f->contexts;

    if (strcmp(row->node, t->node) == 0 || (!row->node_alive && contexts_know_the_dead(t)))
        return false;
    a->row = row;
    if (is_address(row->node_url)) {
        a->elsewhere = row->node_url;
    } else {
        a->r = err_set(e, SG_ERR_LIMIT, -EAGAIN,
                       "path '%.64s' of conversation '%.64s' has its sandbox on another server, "
                       "which has no public_url set: ask that one",
                       row->path, row->conversation);
        a->e = e;
    }
    return true;
}

void context_hold(struct sandbox *b)
{
    sandbox_ref(b);
    b->holds++;
}

void context_release(struct sandbox *b)
{
    b->holds--;
    b->used_ns = clock_ns();
    sandbox_unref(b);
}

/* ---- names ----------------------------------------------------------------------------------- */

/* The length of the UTF-8 character at p; 0 if it is invalid or a control character. */
static size_t character(const unsigned char *p, size_t len)
{
    bool control = *p < 0x20 || *p == 0x7f || (len > 1 && *p == 0xc2 && p[1] < 0xa0);

    return control ? 0 : jw_utf8_sequence(p, len);
}

int context_name_check(const char *field, const char *value, struct sg_error *e)
{
    if (!value || !value[0])
        return err_invalid(e, "%s is missing or empty: give 1 to %d bytes", field, CTX_NAME_MAX);
    size_t len = strlen(value);
    if (len > CTX_NAME_MAX)
        return err_invalid(e, "%s is longer than %d bytes", field, CTX_NAME_MAX);
    for (size_t at = 0, n; at < len; at += n) {
        n = character((const unsigned char *)value + at, len - at);
        if (n == 0)
            return err_invalid(e, "%s has a control character, or is not UTF-8, at byte %zu", field,
                               at);
    }
    return 0;
}

/* ---- beginning ------------------------------------------------------------------------------- */

struct ctx_store *contexts_store(struct front *f)
{
    return f->contexts->store;
}

/* The key is in a file beside the server's database, not in it: whoever gets hold of the database
 * does not have the key. */
static int open_key(struct front *f, struct vault_key **ret, struct sg_error *e)
{
    AUTO(close_p) int dir = store_dir(f->store, e);

    return dir < 0 ? dir : vault_key_open(dir, KEPT_KEY, ret, e);
}

int contexts_start(struct front *f, struct ctx_store *store, void (*started)(struct front *f),
                   struct sg_error *e)
{
    struct contexts *t = NEW(struct contexts, .front = f, .store = store, .on_started = started);
    unsigned char bytes[ID_LEN];
    int r = store_secret(f->store, "node", bytes, sizeof(bytes), e);

    if (r == 0)
        r = open_key(f, &t->key, e);
    if (r < 0) {
        free(t);
        return r;
    }
    id_from_bytes(bytes, t->node);
    f->contexts = t;
    f->on_sandbox_ended = on_sandbox_ended;
    reaper_start(f);
    return 0;
}
