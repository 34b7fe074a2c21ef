/* Sandboxes that wait with their start command running: whose they are, how many, and when they make
 * way. Time passes when the test says so. */
#include "tap.h"

#include <sys/syscall.h>
#include <unistd.h>

#include "fork_agents.h"
#include "front/core/standby.h"

TAP_MAIN

#define SNAPSHOT "snapshot000000000001"
#define TICK_MS  500
#define TRIES    200

static uint64_t passed_ms;

__attribute__((visibility("default"))) int clock_gettime(clockid_t id, struct timespec *ret)
{
    int r = (int)syscall(SYS_clock_gettime, id, ret);

    ret->tv_sec += (time_t)(passed_ms / 1000);
    ret->tv_nsec += (long)(passed_ms % 1000) * 1000000;
    if (ret->tv_nsec >= 1000000000) {
        ret->tv_sec++;
        ret->tv_nsec -= 1000000000;
    }
    return r;
}

__attribute__((constructor)) static void agents_start(void)
{
    fork_agents_start();
    server.front.settings.pool_max = 8;
    server.front.settings.tenant_sandboxes = 1000;
}

static const char *tenant(unsigned n)
{
    static char id[8][ID_LEN + 1];

    snprintf(id[n], sizeof(id[n]), "tenant%014u", n);
    return id[n];
}

static void turns(void)
{
    for (int i = 0; i < 6; i++)
        server_turn(-1);
}

static void ticks(unsigned n)
{
    while (n-- > 0) {
        passed_ms += TICK_MS;
        turns();
    }
}

/* How many wait for a tenant, or for all if it is NULL. */
static unsigned waiting(const char *of)
{
    unsigned n = 0;

    SANDBOXES_EACH(b, &server.front)
        n += b->spec.standby && b->state == SANDBOX_RUNNING &&
             (!of || strcmp(b->spec.tenant, of) == 0);
    return n;
}

static size_t count_orders(enum order_op op)
{
    size_t n = 0;

    for (size_t i = 0; i < server.n_orders; i++)
        n += server.orders[i].op == (uint32_t)op;
    return n;
}

struct made {
    bool done;
    int r;
    struct sandbox *sandbox;
};

static void on_done(void *arg, struct sandbox *b, int r, const struct sg_error *e)
{
    struct made *m = arg;

    (void)e;
    *m = (struct made){true, r, r == 0 ? sandbox_ref(b) : NULL};
}

/* Asks for a sandbox of a template with a start command; `ready`: and this ready command. */
static void ask_for(struct made *m, const char *of, const char *template, const char *ready,
                    json_t *metadata)
{
    struct sandbox_spec spec;

    sandbox_spec_init(&spec);
    snprintf(spec.tenant, sizeof(spec.tenant), "%s", of);
    snprintf(spec.template_id, sizeof(spec.template_id), "%s", template);
    spec.envs = json_object();
    spec.metadata = metadata;
    spec.defaults = json_pack("{s:s, s:s*}", "startCmd", "serve", "readyCmd", ready);
    *m = (struct made){0};
    sandbox_create(&server.front, &spec, SNAPSHOT, 600000, on_done, m);
}

static void wait_for(const struct made *m)
{
    for (int i = 0; i < TRIES && !m->done; i++)
        ticks(1);
    EXPECT(m->done);
}

static void end_it(struct made *m)
{
    if (m->sandbox)
        sandbox_kill(m->sandbox, NULL, NULL);
    sandbox_unref(steal_ptr(&m->sandbox));
    turns();
}

static void use(const char *of, const char *template)
{
    struct made m;

    ask_for(&m, of, template, NULL, NULL);
    wait_for(&m);
    EXPECT(m.r == 0);
    end_it(&m);
}

/* The rig takes a limited number of orders. */
static void forget_orders(void)
{
    turns();
    server.n_orders = 0;
}

/* Nothing waits, and nothing is wanted any more. */
static void clear(void)
{
    memset(server.fail, 0, sizeof(server.fail));
    passed_ms += 600000;
    ticks(3);
    EXPECT(waiting(NULL) == 0);
    forget_orders();
}

static void one_waits(const char *of)
{
    use(of, "template");
    for (int i = 0; i < TRIES && waiting(of) == 0; i++)
        ticks(1);
    ticks(1); /* its start command has begun, too */
    EXPECT(waiting(of) == 1);
    forget_orders();
}

/* ---- shares ---------------------------------------------------------------------------------- */

TEST(each_tenant_has_a_share)
{
    unsigned least = STANDBY_TENANT;

    for (unsigned t = 0; t < 4; t++)
        for (int i = 0; i < 6; i++)
            use(tenant(t), "template");
    ticks(24);
    for (unsigned t = 0; t < 4; t++)
        EXPECT(waiting(tenant(t)) == STANDBY_TENANT);
    EXPECT(waiting(NULL) == STANDBY_ALL);
    forget_orders();
    /* There is no room for more, so tenants that have more give some up. */
    for (int i = 0; i < 4; i++)
        use(tenant(4), "template");
    ticks(12);
    EXPECT(waiting(NULL) == STANDBY_ALL && waiting(tenant(4)) >= 3);
    for (unsigned t = 0; t < 4; t++)
        least = waiting(tenant(t)) < least ? waiting(tenant(t)) : least;
    EXPECT(least >= 3);
    clear();
}

TEST(a_tenant_whose_templates_are_never_ready_holds_up_nobody)
{
    struct made never;

    ask_for(&never, tenant(0), "template", "never", NULL);
    ticks(4);
    EXPECT(!never.done && waiting(tenant(0)) == 1); /* it is not ready, and so not handed out */
    one_waits(tenant(1));
    EXPECT(!never.done);
    passed_ms += 61000;
    ticks(2);
    EXPECT(never.done && never.r < 0);
    clear();
}

TEST(the_template_that_was_not_used_for_longest_makes_way)
{
    char name[16];

    for (int i = 0; i < 6; i++) {
        snprintf(name, sizeof(name), "template%d", i);
        use(tenant(0), name);
        ticks(4);
        EXPECT(waiting(tenant(0)) <= STANDBY_TENANT);
    }
    ticks(8);
    EXPECT(waiting(tenant(0)) == STANDBY_TENANT);
    SANDBOXES_EACH(b, &server.front)
        EXPECT(!b->spec.standby || strcmp(b->spec.template_id, "template1") > 0);
    /* And it does not take the place back. */
    forget_orders();
    ticks(6);
    EXPECT(server.n_orders == 0);
    clear();
}

/* ---- making way ------------------------------------------------------------------------------ */

/* The sandboxes that wait are ended, and by the time that they are gone there is room. */
static void make_room_when_killed(const struct made *m)
{
    for (int i = 0; i < TRIES && !m->done; i++) {
        server_turn(-1);
        if (count_orders(ORDER_KILL) > 0)
            memset(server.fail, 0, sizeof(server.fail));
    }
    EXPECT(m->done);
}

TEST(a_create_that_is_refused_for_want_of_room_is_tried_once_more)
{
    struct made m;

    one_waits(tenant(0));
    server.fail[ORDER_CREATE] = -EAGAIN;
    ask_for(&m, tenant(1), "other", NULL, NULL);
    make_room_when_killed(&m);
    EXPECT(m.r == 0 && waiting(NULL) == 0);
    EXPECT(count_orders(ORDER_CREATE) == 2 && count_orders(ORDER_KILL) == 1);
    end_it(&m);
    clear();
}

TEST(and_refused_if_that_does_not_help)
{
    struct made m;

    one_waits(tenant(0));
    server.fail[ORDER_CREATE] = -EAGAIN;
    ask_for(&m, tenant(1), "other", NULL, NULL);
    turns();
    EXPECT(m.done && m.r == -EAGAIN && waiting(NULL) == 0);
    EXPECT(count_orders(ORDER_CREATE) == 2);
    /* With none that waits it is refused at once. */
    ask_for(&m, tenant(1), "other", NULL, NULL);
    turns();
    EXPECT(m.done && m.r == -EAGAIN && count_orders(ORDER_CREATE) == 3);
    clear();
}

TEST(at_its_own_limit_only_a_tenants_own_make_way)
{
    struct made m;

    one_waits(tenant(0));
    one_waits(tenant(1));
    server.fail[ORDER_CREATE] = -EDQUOT;
    ask_for(&m, tenant(1), "other", NULL, NULL);
    make_room_when_killed(&m);
    EXPECT(m.r == 0 && waiting(tenant(0)) == 1 && waiting(tenant(1)) == 0);
    end_it(&m);
    clear();
}

TEST(a_resume_too)
{
    struct made m, again = {0};

    ask_for(&m, tenant(1), "other", NULL, NULL);
    wait_for(&m);
    sandbox_pause(m.sandbox, true, NULL, NULL);
    clear();
    one_waits(tenant(0));
    server.fail[ORDER_RESUME] = -EAGAIN;
    sandbox_resume(m.sandbox, true, 600000, on_done, &again);
    make_room_when_killed(&again);
    EXPECT(again.r == 0 && m.sandbox->state == SANDBOX_RUNNING && waiting(NULL) == 0);
    EXPECT(count_orders(ORDER_RESUME) == 2);
    sandbox_unref(again.sandbox);
    end_it(&m);
    clear();
}

/* ---- handing out ----------------------------------------------------------------------------- */

TEST(one_that_waits_is_handed_out_with_its_note)
{
    struct made m;

    one_waits(tenant(0));
    ask_for(&m, tenant(0), "template", NULL, json_pack("{s:s}", "whose", "mine"));
    turns();
    EXPECT(m.done && m.r == 0 && count_orders(ORDER_CREATE) == 0);
    EXPECT(count_orders(ORDER_NOTE) == 1 && !m.sandbox->spec.standby);
    EXPECT_STR(json_string_value(json_object_get(m.sandbox->spec.metadata, "whose")), "mine");
    end_it(&m);
    clear();
}

/* The warden refuses one of the orders: its note would still say that it waits, or it is ending. */
static void refused_at_handing_out(enum order_op op, int code)
{
    char id[ID_LEN + 1] = "";
    struct made m;

    one_waits(tenant(0));
    SANDBOXES_EACH(b, &server.front)
        if (b->spec.standby)
            memcpy(id, b->id, sizeof(id));
    server.fail[op] = code;
    ask_for(&m, tenant(0), "template", NULL, NULL);
    turns();
    EXPECT(m.done && m.r == 0 && strcmp(m.sandbox->id, id) != 0);
    EXPECT(count_orders(ORDER_CREATE) == 1 && last_order(ORDER_KILL) &&
           strcmp(last_order(ORDER_KILL)->id, id) == 0);
    end_it(&m);
    clear();
}

TEST(one_that_cannot_be_handed_out_is_replaced)
{
    refused_at_handing_out(ORDER_NOTE, -EMFILE);
    refused_at_handing_out(ORDER_DEADLINE, -ENOENT);
}

TEST(a_note_that_is_too_large_is_refused_and_the_next_client_gets_the_sandbox)
{
    AUTO(strbuf_done) struct strbuf text = strbuf_upto(ORDER_NOTE_MAX + 1);
    struct made m;

    while (text.len < ORDER_NOTE_MAX)
        strbuf_add(&text, "0123456789abcdef", 16);
    one_waits(tenant(0));
    ask_for(&m, tenant(0), "template", NULL, json_pack("{s:s}", "long", text.buf));
    turns();
    EXPECT(m.done && m.r == -E2BIG && waiting(tenant(0)) == 1);
    ask_for(&m, tenant(0), "template", NULL, NULL);
    turns();
    EXPECT(m.done && m.r == 0 && count_orders(ORDER_CREATE) == 0);
    end_it(&m);
    clear();
}
