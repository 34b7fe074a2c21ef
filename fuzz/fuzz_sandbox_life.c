/* The life of sandboxes in the warden: the input is orders of a front, and what may happen between
 * them, in any order. At the end everything is let go, and then nothing may be left: every order
 * was answered once, no sandbox has ended twice, and slots, shares, snapshots and descriptors have
 * come back. */
#include <assert.h>

#include "../tests/unit/life_rig.h"
#include "lib/base/fds.h"

#define STEPS_MAX 400

/* Ends and starts a process, a broker or a front. */
static void break_something(struct rig *r, uint8_t what)
{
    struct tenant_pool *w = LIST_FIRST(struct tenant_pool, &r->s->tenant_pools, link);

    if (what % 8 == 7)
        rig_front_dies(r);
    else if (w && what % 8 == 6 && w->kernels.broker.fd >= 0)
        fake_tell(w->provider, NULL, NEWS_GONE, -EPIPE);
    else if (w && w->provider->n > 0)
        fake_signal(w->provider->all[what % w->provider->n]->process, true);
}

static void let_wait(uint8_t what)
{
    fake.no_word = what & 1;
    fake.no_root = what & 2;
    fake.no_news = what & 4;
    fake.no_end = what & 8;
    fake.never_still = what & 16;
    rig_saves_wait = what & 32;
    fake.open_files = what & 64;
    fake.no_mount = what & 128;
}

/* What had to wait, and may go on now, says so. */
static void wake(struct rig *r)
{
    LIST_EACH(struct tenant_pool, w, &r->s->tenant_pools, link) {
        struct provider *p = w->provider;

        if (!fake.no_news && p->n_news > 0)
            fake_signal(p->broker, true);
        for (uint32_t i = 0; i < p->n; i++)
            if (p->all[i]->up ? (p->all[i]->roots && !fake.no_root) ||
                                    (p->all[i]->mounts > 0 && !fake.no_mount)
                              : p->all[i]->finished && !fake.no_word)
                fake_signal(p->all[i]->line, true);
    }
}

static void give_order(struct rig *r, uint8_t what, uint8_t arg)
{
    static const uint32_t ops[] = {ORDER_CREATE, ORDER_CREATE,     ORDER_KILL,   ORDER_PAUSE,
                                   ORDER_RESUME, ORDER_SNAPSHOT,   ORDER_STATS,  ORDER_NOTE,
                                   ORDER_REWIND, ORDER_CHECKPOINT, ORDER_FORGET, ORDER_DEADLINE,
                                   ORDER_SAVE,   ORDER_POLICY};
    uint32_t op = ops[what % ARRAY_SIZE(ops)];
    unsigned sandbox = arg % 4;
    struct order o = {.flags = arg & 16 ? ORDER_FILES_ONLY : 0};

    if (op == ORDER_CREATE || op == ORDER_CHECKPOINT || op == ORDER_REWIND)
        o.flags = (arg & 16 ? ORDER_STATE : 0) | (arg & 32 ? ORDER_LAST : 0) |
                  (arg & 64 ? ORDER_KEEP : 0) | (arg & 128 ? ORDER_SOON : ORDER_WHOLE);
    if (op == ORDER_DEADLINE || op == ORDER_CREATE || op == ORDER_RESUME) {
        o.deadline_ns = arg & 4 ? rig_now + (arg >> 3) * 1000000ull : 0;
        o.on_expiry = (uint32_t)(arg >> 4) % EXPIRY_MAX_;
    }
    if (op == ORDER_CREATE && (arg & 3) == 3) {
        o.n_volumes = arg & 4 ? 2 : 1;
        for (uint32_t i = 0; i < o.n_volumes; i++)
            o.volumes[i].target[0] = '/';
    }
    if (op != ORDER_CREATE || (arg & 8))
        snprintf(o.snapshot, sizeof(o.snapshot), "snapshot%012u", (arg >> 2) % 3u);
    if (r->seq + 1 < RIG_ORDERS)
        rig_order(r, op, sandbox, o);
}

static void step(struct rig *r, uint8_t what, uint8_t arg)
{
    if (what < 160)
        give_order(r, what, arg);
    else if (what < 180)
        rig_pass(r, arg * arg);
    else if (what < 195)
        let_wait(arg);
    else if (what < 210)
        fake.fails |= 1u << arg % FAKE_MAX_FAULT;
    else if (what < 220)
        break_something(r, arg);
    else if (what < 230)
        arg & 2 ? rig_worker_ends(arg & 1) : rig_saved(arg & 1);
    else
        wake(r);
    if (what & 1)
        rig_run(r);
}

static void settle_all(struct rig *r)
{
    let_wait(0);
    fake.fails = 0;
    for (int i = 0; i < 8; i++) {
        wake(r);
        rig_pass(r, 16000);
    }
}

static bool any_sandbox(struct rig *r)
{
    return MAP_FIRST(struct sandbox, &r->s->sandboxes, by_id) != NULL;
}

static void forget_names(struct rig *r)
{
    for (unsigned i = 0; i < 3; i++) {
        char name[ID_LEN + 1];

        snprintf(name, sizeof(name), "snapshot%012u", i);
        struct checkpoint *m = checkpoint_find(r->s, name);
        struct snapshot *l = snapshot_find(r->s, name);
        if (m)
            checkpoint_forget(m);
        if (l)
            snapshot_forget(l);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    struct rig r;
    uint64_t first = 1;
    uint64_t fds = fds_open();

    rig_open(&r, len > 0 ? data[0] % 4 : 0);
    for (size_t i = 1; i + 1 < len && i < 2 * STEPS_MAX; i += 2) {
        uint32_t turn = r.s->front.turn;

        step(&r, data[i], data[i + 1]);
        if (turn != r.s->front.turn)
            first = r.seq + 1; /* who gave the orders before is gone */
    }
    settle_all(&r);
    for (unsigned i = 0; i < 4; i++)
        if (sandbox_find(r.s, rig_id(i)))
            rig_order(&r, ORDER_KILL, i, (struct order){0});
    settle_all(&r);
    assert(!any_sandbox(&r));
    assert(r.s->impossible == 0);
    for (uint64_t i = 1; i <= r.seq; i++)
        assert(i < first ? r.answers[i] <= 1 : r.answers[i] == 1);
    for (unsigned i = 0; i < RIG_IDS; i++)
        assert(r.ended[i] <= r.created[i]);
    assert(r.s->budget.reserved == 0 && list_empty(&r.s->teardowns));
    forget_names(&r);
    settle_all(&r);
    assert(list_empty(&r.s->checkpoints) && list_empty(&r.s->snapshots) && !rig_saves &&
           list_empty(&rig_workers));
    rig_pass(&r, r.s->settings.tenant_idle_ms);
    settle_all(&r);
    assert(list_empty(&r.s->tenant_pools) && fake.instances == 0 && fake.providers == 0);
    rig_close(&r);
    assert(fds_open() == fds);
    return 0;
}
