/* A store of contexts, called as if its answers came at once: CALL runs the loop until the callback
 * has come, with a deadline. Each case has a tenant and a server (node) of its own, so that cases
 * may share a database. */
#pragma once

#include "tap.h"

#include <uv.h>

#include "lib/base/base.h"
#include "lib/base/clock.h"
#include "front/store/contexts.h"

#define RIG_WAIT_MS  20000
#define RIG_TTL_MS   600000
#define RIG_LEASE_MS 60000
#define RIG_URL      "http://node.example:3000"
#define RIG_KEPT_MAX 4096

/* What came, copied: lives until the case ends. */
struct ctx_answer {
    int r;
    struct sg_error e;
    enum ctx_claimed claimed;
    size_t n;
    bool more;
    struct ctx_row row; /* the first, or zeros */
    struct ctx_row *rows;
    struct ctx_path *paths;
    struct ctx_usage_row *used;
    char *kept_text; /* or NULL */
    uint64_t cursor;
};

struct ctx_rig {
    uv_loop_t *loop;
    struct ctx_store *s;
    char tenant[ID_LEN + 1], node[ID_LEN + 1];
    int came; /* answers to the call that is under way */
    struct ctx_answer answer;
    void *kept[RIG_KEPT_MAX];
    size_t n_kept;
};

typedef struct ctx_store *(*ctx_open_fn)(uv_loop_t *loop);
/* Must leave nothing of it in the loop. */
typedef void (*ctx_close_fn)(struct ctx_store *s, uv_loop_t *loop);

static inline _Noreturn void rig_bail(const char *why)
{
    printf("Bail out! %s\n", why);
    exit(1);
}

/* A copy of n items, or NULL if there are none. */
static inline void *rig_keep(struct ctx_rig *t, const void *items, size_t n, size_t size)
{
    if (!items || n == 0)
        return NULL;
    if (t->n_kept == RIG_KEPT_MAX)
        rig_bail("a case makes more calls than the rig has room for");
    void *copy = xcalloc(n, size);
    memcpy(copy, items, n * size);
    t->kept[t->n_kept++] = copy;
    return copy;
}

static inline void rig_done(void *arg, const struct ctx_reply *reply)
{
    struct ctx_rig *t = arg;
    struct ctx_answer *a = &t->answer;

    t->came++;
    *a = (struct ctx_answer){.r = reply->r,
                             .claimed = reply->claimed,
                             .n = reply->n,
                             .more = reply->more,
                             .cursor = reply->cursor};
    if (reply->r < 0) {
        a->e = reply->e;
        EXPECT(reply->e.code == reply->r && reply->e.message[0]);
        EXPECT(reply->e.kind != SG_ERR_NONE && reply->e.kind != SG_ERR_INTERNAL);
        return;
    }
    a->rows = rig_keep(t, reply->rows, reply->n, sizeof(*a->rows));
    a->paths = rig_keep(t, reply->paths, reply->n, sizeof(*a->paths));
    a->used = rig_keep(t, reply->used, reply->n, sizeof(*a->used));
    a->kept_text = rig_keep(t, reply->kept, reply->kept ? strlen(reply->kept) + 1 : 0, 1);
    if (a->rows)
        a->row = a->rows[0];
}

static inline void rig_ignore_timer(uv_timer_t *timer)
{
    (void)timer;
}

/* Runs the loop until *count is at least `want`. */
static inline void rig_run_until(uv_loop_t *loop, const int *count, int want)
{
    uint64_t end = clock_ns() + RIG_WAIT_MS * 1000000ull;
    uv_timer_t tick; /* so that waiting ends */

    uv_timer_init(loop, &tick);
    uv_timer_start(&tick, rig_ignore_timer, 50, 50);
    while (*count < want && clock_ns() < end)
        uv_run(loop, UV_RUN_ONCE);
    uv_close((uv_handle_t *)&tick, NULL);
    uv_run(loop, UV_RUN_NOWAIT);
    if (*count < want)
        rig_bail("the store does not answer");
}

static inline void rig_pause(struct ctx_rig *t, uint64_t ms)
{
    uint64_t end = clock_ns() + ms * 1000000ull;
    uv_timer_t tick;

    uv_timer_init(t->loop, &tick);
    uv_timer_start(&tick, rig_ignore_timer, 1, 1);
    while (clock_ns() < end)
        uv_run(t->loop, UV_RUN_ONCE);
    uv_close((uv_handle_t *)&tick, NULL);
    uv_run(t->loop, UV_RUN_NOWAIT);
}

static inline struct ctx_answer rig_finish(struct ctx_rig *t)
{
    EXPECT(t->came == 0); /* never before the call returns */
    rig_run_until(t->loop, &t->came, 1);
    EXPECT(t->came == 1); /* exactly once */
    return t->answer;
}

#define CALL(t, op, ...) \
    ((t)->came = 0, (t)->s->ops->op((t)->s, __VA_ARGS__, rig_done, (t)), rig_finish(t))

/* ---- shorter --------------------------------------------------------------------------------- */

static inline struct ctx_claim rig_ask(struct ctx_rig *t, const char *conversation,
                                       const char *path, char id[ID_LEN + 1])
{
    id_random(id);
    return (struct ctx_claim){
        .tenant = t->tenant,
        .conversation = conversation,
        .path = path,
        .id = id,
        .node = t->node,
        .template_id = "base",
        .default_ttl_ms = RIG_TTL_MS,
        .lease_ms = RIG_LEASE_MS,
        .limits = {1000, 1000},
    };
}

static inline struct ctx_answer rig_claim(struct ctx_rig *t, const char *conversation,
                                          const char *path)
{
    char id[ID_LEN + 1];
    struct ctx_claim q = rig_ask(t, conversation, path, id);

    return CALL(t, claim, &q);
}

static inline struct ctx_answer rig_claim_ttl(struct ctx_rig *t, const char *conversation,
                                              const char *path, uint64_t ttl_ms)
{
    char id[ID_LEN + 1];
    struct ctx_claim q = rig_ask(t, conversation, path, id);

    q.ttl_ms = ttl_ms;
    return CALL(t, claim, &q);
}

static inline struct ctx_answer rig_claim_limit(struct ctx_rig *t, const char *conversation,
                                                const char *path, uint32_t tenant,
                                                uint32_t of_conversation)
{
    char id[ID_LEN + 1];
    struct ctx_claim q = rig_ask(t, conversation, path, id);

    q.limits = (struct ctx_limits){tenant, of_conversation};
    return CALL(t, claim, &q);
}

/* As another server. */
static inline struct ctx_answer rig_claim_as(struct ctx_rig *t, const char *node,
                                             const char *conversation, const char *path)
{
    char id[ID_LEN + 1];
    struct ctx_claim q = rig_ask(t, conversation, path, id);

    q.node = node;
    return CALL(t, claim, &q);
}

/* READY, with a sandbox. */
static inline struct ctx_row rig_ready_ttl(struct ctx_rig *t, const char *conversation,
                                           const char *path, uint64_t ttl_ms)
{
    char sandbox_id[ID_LEN + 1];
    struct ctx_answer a = rig_claim_ttl(t, conversation, path, ttl_ms);

    EXPECT(a.r == 0 && a.claimed == CLAIM_NEW);
    id_random(sandbox_id);
    a = CALL(t, settle, t->tenant, a.row.id, t->node, sandbox_id, NULL, NULL);
    EXPECT(a.r == 0 && a.row.status == CTX_READY);
    EXPECT_STR(a.row.sandbox_id, sandbox_id);
    return a.row;
}

static inline struct ctx_row rig_ready(struct ctx_rig *t, const char *conversation,
                                       const char *path)
{
    return rig_ready_ttl(t, conversation, path, 0);
}

static inline struct ctx_row rig_get(struct ctx_rig *t, const char *id)
{
    struct ctx_answer a = CALL(t, get, t->tenant, id);

    EXPECT(a.r == 0 && a.n == 1);
    EXPECT_STR(a.row.id, id);
    return a.row;
}

/* Until the store's clock is past that time. */
static inline void rig_wait_past(struct ctx_rig *t, const char *id, int64_t ms)
{
    uint64_t end = clock_ns() + RIG_WAIT_MS * 1000000ull;

    while (rig_get(t, id).now_ms <= ms) {
        if (clock_ns() > end)
            rig_bail("the store's clock stands still");
        rig_pause(t, 5);
    }
}

static inline struct ctx_answer rig_list(struct ctx_rig *t, unsigned statuses)
{
    struct ctx_list q = {
        .tenant = t->tenant, .statuses = statuses, .before_id = "", .limit = CTX_LIST_MAX};

    return CALL(t, list, &q);
}

static inline struct ctx_answer rig_expire(struct ctx_rig *t, size_t limit)
{
    return CALL(t, expire, t->node, t->tenant, RIG_LEASE_MS, limit);
}

static inline struct ctx_answer rig_days(struct ctx_rig *t, const char *tenant, const char *from,
                                         const char *to)
{
    struct ctx_usage_query q = {.tenant = tenant, .from = from, .to = to};

    return CALL(t, usage_get, &q);
}

static inline bool rig_has(const struct ctx_answer *a, const char *id)
{
    for (size_t i = 0; i < a->n; i++)
        if (strcmp(a->rows[i].id, id) == 0)
            return true;
    return false;
}

/* ---- a case ---------------------------------------------------------------------------------- */

static inline void rig_run(ctx_open_fn open, ctx_close_fn close_store,
                           void (*fn)(struct ctx_rig *t))
{
    struct ctx_rig *t = xcalloc(1, sizeof(*t));
    uv_loop_t loop;

    EXPECT(uv_loop_init(&loop) == 0);
    t->loop = &loop;
    t->s = open(&loop);
    id_random(t->tenant);
    id_random(t->node);
    EXPECT(CALL(t, seen, t->node, RIG_URL).r == 0);
    fn(t);
    close_store(t->s, &loop);
    uv_run(&loop, UV_RUN_DEFAULT);
    EXPECT(uv_loop_close(&loop) == 0);
    while (t->n_kept > 0)
        free(t->kept[--t->n_kept]);
    free(t);
}
