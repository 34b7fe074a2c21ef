#include "tap.h"

#include <sys/socket.h>

#include "lib/base/clock.h"
#include "lib/ipc/ipc.h"
#include "front/contexts/impl.h"
#include "front/contexts/usage.h"
#include "front/core/lifecycle.h"
#include "front/core/usage.h"
#include "front/core/warden.h"

#define TENANT  "tttttttttttttttttttt"
#define CONTEXT "cccccccccccccccccccc"
#define MIB     (1024u * 1024)

/* ---- a store that does what the test says ---------------------------------------------------- */

static struct {
    struct ctx_store base;
    bool refuse, deaf; /* deaf: it does not answer yet */
    unsigned calls;
    struct ctx_usage_add got[LEDGER_MAX + 2];
    size_t n;
    ctx_done done;
    void *arg;
    uv_timer_t answer;
} store;

static void on_answer(uv_timer_t *timer)
{
    struct ctx_reply reply = {.r = store.refuse ? -EAGAIN : 0};

    (void)timer;
    store.done(store.arg, &reply);
}

static void fake_usage_add(struct ctx_store *s, const struct ctx_usage_add *adds, size_t n,
                           ctx_done done, void *arg)
{
    (void)s;
    store.calls++;
    for (size_t i = 0; i < n && !store.refuse; i++)
        store.got[store.n++] = adds[i];
    store.done = done;
    store.arg = arg;
    if (!store.deaf)
        uv_timer_start(&store.answer, on_answer, 0, 0);
}

/* What the store was told of a tenant and context, in all. */
static struct ctx_usage told(const char *tenant, const char *context)
{
    struct ctx_usage sum = {0};

    for (size_t i = 0; i < store.n; i++)
        if (strcmp(store.got[i].tenant, tenant) == 0 && strcmp(store.got[i].context, context) == 0)
            ctx_usage_sum(&sum, &store.got[i].usage);
    return sum;
}

/* ---- a front, and the warden's end of its orders --------------------------------------------- */

static struct {
    struct front front;
    struct contexts contexts;
    int warden;
} here;

static void on_tell(struct front *f, const struct order_answer *a, int *fds, size_t n)
{
    (void)fds, (void)n;
    if (a->tell == TELL_ENDED)
        sandbox_told_ended(f, a);
    else if (a->tell == TELL_PAUSED)
        sandbox_told_paused(f, a);
}

static void on_gone(struct front *f, bool unreadable)
{
    (void)f, (void)unreadable;
    abort();
}

static void set_up(void)
{
    static const struct ctx_store_ops ops = {.usage_add = fake_usage_add};
    static const struct warden_handlers handlers = {.on_tell = on_tell, .on_gone = on_gone};
    int pair[2];

    store.base.ops = &ops;
    here.contexts.store = &store.base;
    here.front.contexts = &here.contexts;
    store.refuse = store.deaf = false;
    store.calls = 0;
    store.n = 0;
    if (here.front.loop)
        return;
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair) < 0)
        abort();
    here.warden = pair[1];
    here.front.loop = uv_default_loop();
    uv_timer_init(here.front.loop, &store.answer);
    warden_open(&here.front, pair[0], &handlers);
}

static void set_true(void *arg)
{
    *(bool *)arg = true;
}

/* Lets everything be told. */
static void finish(void)
{
    uint64_t deadline = clock_ns() + 10000000000ull;
    bool done = false;

    usage_finish(&here.front, set_true, &done);
    while (!done && clock_ns() < deadline) {
        uv_run(here.front.loop, UV_RUN_NOWAIT);
        usleep(100);
    }
    EXPECT(done);
}

static void turn(void)
{
    for (int i = 0; i < 5; i++)
        uv_run(here.front.loop, UV_RUN_NOWAIT);
}

static struct sandbox *make_sandbox(const char *context)
{
    struct sandbox_spec spec;
    char id[ID_LEN + 1];

    sandbox_spec_init(&spec);
    memcpy(spec.tenant, TENANT, sizeof(spec.tenant));
    memcpy(spec.context, context, strlen(context));
    id_random(id);
    struct sandbox *b = sandbox_new(&here.front, id, &spec);
    b->state = SANDBOX_RUNNING;
    sandboxes_add(b);
    usage_made(b);
    return b;
}

static void tell(const struct sandbox *b, enum order_tell what, uint64_t cpu_usec, uint64_t memory)
{
    struct order_answer a = {.magic = ORDER_MAGIC,
                             .tell = what,
                             .end = END_KILLED,
                             .state = STATE_PAUSED,
                             .stats = {.cpu_usec = cpu_usec, .memory_used = memory}};

    memcpy(a.id, b->id, sizeof(a.id));
    EXPECT(ipc_send(here.warden, &a, sizeof(a), NULL, 0) >= 0);
    turn();
}

/* Answers the last order that came. */
static void reply(int code)
{
    struct order_answer a = {.magic = ORDER_MAGIC, .tell = TELL_REPLY, .code = code};
    struct order o;

    while (ipc_recv(here.warden, &o, sizeof(o), NULL) == (ssize_t)sizeof(o))
        a.seq = o.seq;
    EXPECT(ipc_send(here.warden, &a, sizeof(a), NULL, 0) >= 0);
    turn();
}

static void end_sandbox(struct sandbox *b, uint64_t cpu_usec)
{
    tell(b, TELL_ENDED, cpu_usec, 0);
    sandbox_unref(b);
}

/* ---- what is counted ------------------------------------------------------------------------- */

TEST(counts_the_difference_of_the_processor_time)
{
    set_up();
    struct sandbox *b = make_sandbox(CONTEXT);

    usage_sampled(b, &(struct order_stats){.cpu_usec = 1000});
    usage_sampled(b, &(struct order_stats){.cpu_usec = 5000});
    usage_sampled(b, &(struct order_stats){.cpu_usec = 4000}); /* never back */
    finish();
    EXPECT(told(TENANT, CONTEXT).cpu_us == 5000);
    EXPECT(told(TENANT, CONTEXT).sandboxes == 1);
    usage_sampled(b, &(struct order_stats){.cpu_usec = 7000});
    end_sandbox(b, 9000);
    finish();
    EXPECT(told(TENANT, CONTEXT).cpu_us == 9000);
    EXPECT(told(TENANT, CONTEXT).sandboxes == 1);
    EXPECT(told(TENANT, "").cpu_us == 0);
}

TEST(memory_is_counted_by_time_between_samples)
{
    set_up();
    struct sandbox *b = make_sandbox(CONTEXT);

    b->usage.since_ns = clock_ns() - 2000000000; /* 2 s with 100 MiB */
    usage_sampled(b, &(struct order_stats){.memory_used = 100 * MIB});
    EXPECT(b->usage.total.memory_mib_ms >= 200000 && b->usage.total.memory_mib_ms < 220000);
    b->usage.since_ns -= 1000000000; /* 1 s with 100 to 300 MiB */
    usage_sampled(b, &(struct order_stats){.memory_used = 300 * MIB});
    EXPECT(b->usage.total.memory_mib_ms >= 399000 && b->usage.total.memory_mib_ms < 440000);
    end_sandbox(b, 0);
    finish();
    EXPECT(told(TENANT, CONTEXT).memory_mib_ms >= 399000);
}

TEST(a_large_memory_for_long_does_not_overflow)
{
    set_up();
    struct sandbox *b = make_sandbox("");
    uint64_t day_ns = 86400ull * 1000000000;

    if (clock_ns() <= day_ns)
        b->usage.since_ns = 1;
    else
        b->usage.since_ns = clock_ns() - day_ns;
    uint64_t ms = (clock_ns() - b->usage.since_ns) / 1000000;
    usage_sampled(b, &(struct order_stats){.memory_used = 1ull << 40});
    EXPECT(b->usage.total.memory_mib_ms >= ms * (1u << 20));
    EXPECT(b->usage.total.memory_mib_ms < (ms + 10000) * (1u << 20));
    end_sandbox(b, 0);
    finish();
}

TEST(a_paused_one_uses_no_memory_time)
{
    set_up();
    struct sandbox *b = make_sandbox(CONTEXT);

    b->link = NULL;
    usage_sampled(b, &(struct order_stats){.cpu_usec = 10, .memory_used = 100 * MIB});
    usage_paused(b, &(struct order_stats){.cpu_usec = 20, .memory_used = 100 * MIB});
    uint64_t before = b->usage.total.memory_mib_ms;
    usage_sampled(b, &(struct order_stats){.cpu_usec = 20, .memory_used = 100 * MIB});
    EXPECT(b->usage.total.memory_mib_ms == before);
    EXPECT(b->usage.total.cpu_us == 20);
    usage_resumed(b);
    b->usage.since_ns -= 1000000000;
    usage_sampled(b, &(struct order_stats){.cpu_usec = 30, .memory_used = 50 * MIB});
    EXPECT(b->usage.total.memory_mib_ms - before >= 50000);
    EXPECT(b->usage.total.memory_mib_ms - before < 55000);
    end_sandbox(b, 30);
    finish();
}

TEST(what_an_earlier_front_counted_is_not_counted_again)
{
    set_up();
    struct sandbox *b = make_sandbox(CONTEXT);

    b->usage = (struct sandbox_usage){0};
    usage_taken_over(b, &(struct order_stats){.cpu_usec = 1000000});
    usage_sampled(b, &(struct order_stats){.cpu_usec = 1000500});
    end_sandbox(b, 1000700);
    finish();
    EXPECT(told(TENANT, CONTEXT).cpu_us == 700);
    EXPECT(told(TENANT, CONTEXT).sandboxes == 0);
}

TEST(what_connections_carried_is_counted_where_it_belongs)
{
    char id[ID_LEN + 1];
    set_up();
    struct sandbox *b = make_sandbox(CONTEXT), *dying = make_sandbox(CONTEXT);

    usage_egress(&here.front, TENANT, b->id, 100, 2000);
    usage_egress(&here.front, TENANT, b->id, 1, 0);
    finish();
    EXPECT(told(TENANT, CONTEXT).egress_up == 101 && told(TENANT, CONTEXT).egress_down == 2000);
    EXPECT(told(TENANT, CONTEXT).bytes_in == 0 && told(TENANT, CONTEXT).bytes_out == 0);
    /* Its connections are cut when it ends, and told of after that. */
    sandbox_kill(dying, NULL, NULL);
    usage_egress(&here.front, TENANT, dying->id, 10, 0);
    memcpy(id, dying->id, sizeof(id));
    tell(dying, TELL_ENDED, 0, 0);
    reply(0);
    sandbox_unref(dying);
    usage_egress(&here.front, TENANT, id, 20, 0);
    memcpy(id, b->id, sizeof(id));
    end_sandbox(b, 0);
    usage_egress(&here.front, TENANT, id, 300, 0);
    /* One that this front never knew; and what is no sandbox at all. */
    usage_egress(&here.front, TENANT, "zzzzzzzzzzzzzzzzzzzz", 0, 4000);
    usage_egress(&here.front, TENANT, "", 9, 9);
    usage_egress(&here.front, "", "zzzzzzzzzzzzzzzzzzzz", 9, 9);
    finish();
    EXPECT(told(TENANT, CONTEXT).egress_up == 431);
    EXPECT(told(TENANT, "").egress_down == 4000 && told(TENANT, "").egress_up == 0);
    EXPECT(told("", "").egress_up == 0);
}

/* ---- the end --------------------------------------------------------------------------------- */

TEST(one_that_is_killed_is_counted_to_its_end)
{
    set_up();
    struct sandbox *b = make_sandbox(CONTEXT);

    sandbox_kill(b, NULL, NULL);
    EXPECT(sandbox_find(&here.front, b->id) == NULL);
    finish();
    EXPECT(store.n == 0); /* it is not told in two parts */
    tell(b, TELL_ENDED, 123456, 0);
    reply(0);
    EXPECT(b->refs == 1);
    sandbox_unref(b);
    finish();
    EXPECT(told(TENANT, CONTEXT).cpu_us == 123456);
    EXPECT(told(TENANT, CONTEXT).sandboxes == 1);
}

TEST(many_that_are_killed_at_once_keep_their_own_figures)
{
    struct sandbox *b[5];
    static const int order[] = {2, 0, 4, 3, 1};
    set_up();

    for (int i = 0; i < 5; i++) {
        b[i] = make_sandbox("");
        memset(b[i]->spec.context, 'a' + i, ID_LEN);
        sandbox_kill(b[i], NULL, NULL);
    }
    for (int i = 0; i < 5; i++)
        tell(b[order[i]], TELL_ENDED, (uint64_t)order[i] + 1, 0);
    finish();
    for (int i = 0; i < 5; i++) {
        EXPECT(told(TENANT, b[i]->spec.context).cpu_us == (uint64_t)i + 1);
        sandbox_unref(b[i]);
    }
}

TEST(a_kill_that_is_answered_without_figures_loses_nothing_known)
{
    set_up();
    struct sandbox *b = make_sandbox("");

    usage_sampled(b, &(struct order_stats){.cpu_usec = 42});
    sandbox_kill(b, NULL, NULL);
    reply(-ENOENT);
    sandbox_unref(b);
    finish();
    EXPECT(told(TENANT, "").cpu_us == 42);
    EXPECT(told(TENANT, "").sandboxes == 1);
}

TEST(the_end_of_one_that_nobody_knows_is_nothing)
{
    struct order_answer a = {.id = "zzzzzzzzzzzzzzzzzzzz", .stats.cpu_usec = 99};
    set_up();

    usage_ended(NULL, &a);
    finish();
    EXPECT(store.calls == 0);
}

/* ---- telling --------------------------------------------------------------------------------- */

TEST(what_the_store_refuses_is_kept_and_told_once)
{
    set_up();
    struct sandbox *b = make_sandbox(CONTEXT), *other = make_sandbox("");

    usage_sampled(b, &(struct order_stats){.cpu_usec = 100});
    store.refuse = true;
    finish();
    finish();
    EXPECT(store.calls == 2 && store.n == 0);
    usage_sampled(b, &(struct order_stats){.cpu_usec = 300});
    end_sandbox(other, 7);
    finish();
    store.refuse = false;
    end_sandbox(b, 400);
    finish();
    finish();
    EXPECT(told(TENANT, CONTEXT).cpu_us == 400);
    EXPECT(told(TENANT, CONTEXT).sandboxes == 1);
    EXPECT(told(TENANT, "").cpu_us == 7);
    EXPECT(store.n == 2); /* an entry for each, however often it was tried */
}

TEST(one_that_has_ended_is_told_soon)
{
    uint64_t deadline = clock_ns() + 5000000000ull;
    set_up();
    struct sandbox *b = make_sandbox(CONTEXT);

    usage_start(&here.front);
    end_sandbox(b, 11);
    while (store.n == 0 && clock_ns() < deadline) {
        uv_run(here.front.loop, UV_RUN_NOWAIT);
        usleep(10000);
    }
    EXPECT(told(TENANT, CONTEXT).cpu_us == 11);
    turn();
}

TEST(what_is_used_while_a_batch_is_on_its_way_is_not_lost)
{
    set_up();
    struct sandbox *b = make_sandbox(CONTEXT);
    bool done = false;

    usage_sampled(b, &(struct order_stats){.cpu_usec = 1});
    store.deaf = true;
    usage_finish(&here.front, set_true, &done);
    usage_sampled(b, &(struct order_stats){.cpu_usec = 3});
    usage_gather(&here.front);
    EXPECT(!done && store.calls == 1);
    store.deaf = false;
    on_answer(NULL);
    turn();
    EXPECT(done);
    EXPECT(told(TENANT, CONTEXT).cpu_us == 3);
    end_sandbox(b, 3);
    finish();
}

TEST(a_full_ledger_counts_for_the_tenant)
{
    struct ctx_usage_add add = {.tenant = TENANT, .usage.cpu_us = 1};
    uint64_t of_contexts = 0;
    set_up();

    for (unsigned i = 0; i < LEDGER_MAX + 100; i++) {
        snprintf(add.context, sizeof(add.context), "%020u", i);
        usage_put_back(&add, 1);
    }
    finish();
    EXPECT(store.n == LEDGER_MAX + 1);
    for (size_t i = 0; i < store.n; i++)
        of_contexts += store.got[i].context[0] ? store.got[i].usage.cpu_us : 0;
    EXPECT(of_contexts == LEDGER_MAX);
    EXPECT(told(TENANT, "").cpu_us == 100);
}

struct look {
    struct ctx_usage usage;
    size_t n;
    bool done;
};

static void on_row(void *arg, const struct ctx_reply *reply)
{
    struct look *l = arg;

    EXPECT(reply->r == 0);
    l->n = reply->n;
    if (reply->n > 0)
        l->usage = reply->rows ? reply->rows[0].usage : reply->used[0].usage;
    l->done = true;
}

static void wait_done(const bool *done)
{
    uint64_t deadline = clock_ns() + 10000000000ull;

    while (!*done && clock_ns() < deadline) {
        uv_run(here.front.loop, UV_RUN_NOWAIT);
        usleep(100);
    }
    EXPECT(*done);
}

TEST(a_real_store_has_it_for_the_context_and_the_day)
{
    struct ctx_claim claim = {.tenant = TENANT,
                              .conversation = "c",
                              .path = "p",
                              .id = CONTEXT,
                              .node = "nnnnnnnnnnnnnnnnnnnn",
                              .template_id = "base",
                              .default_ttl_ms = 60000,
                              .lease_ms = 60000,
                              .limits = {10, 10}};
    struct look made = {0}, row = {0}, days = {0};
    struct sg_error e;
    set_up();

    EXPECT(ctx_store_sqlite(here.front.loop, NULL, &here.contexts.store, &e) == 0);
    struct ctx_store *s = here.contexts.store;
    s->ops->claim(s, &claim, on_row, &made);
    wait_done(&made.done);
    struct sandbox *b = make_sandbox(CONTEXT), *other = make_sandbox("");
    b->usage.total.bytes_out = 77;
    usage_sampled(b, &(struct order_stats){.cpu_usec = 1500});
    finish();
    end_sandbox(b, 2000);
    end_sandbox(other, 500);
    finish();
    s->ops->get(s, TENANT, CONTEXT, on_row, &row);
    wait_done(&row.done);
    EXPECT(row.n == 1 && row.usage.cpu_us == 2000 && row.usage.bytes_out == 77);
    EXPECT(row.usage.sandboxes == 1);
    struct ctx_usage_query all = {.tenant = TENANT, .from = "2000-01-01", .to = "2999-12-31"};
    s->ops->usage_get(s, &all, on_row, &days);
    wait_done(&days.done);
    EXPECT(days.n == 1 && days.usage.cpu_us == 2500 && days.usage.sandboxes == 2);
    s->ops->close(s);
    turn();
}

TAP_MAIN
