#include "tap.h"

#include "lib/base/clock.h"
#include "front/core/events.h"
#include "front/store/events.h"
#include "front/store/db.h"
#include "store_place.h"

#define ACME  "aaaaaaaaaaaaaaaaaaaa"
#define OTHER "oooooooooooooooooooo"

static struct front here;
static struct place place;
static uv_timer_t alive; /* a loop without anything to wait for does not turn */

static void ignore(uv_timer_t *timer)
{
    (void)timer;
}

static void start(void)
{
    struct sg_error e = {0};

    EXPECT(events_start(&here, &e) == 0);
}

/* A server with a store of its own. */
static void set_up(void)
{
    place = place_make();
    if (!here.loop) {
        here.loop = uv_default_loop();
        uv_timer_init(here.loop, &alive);
        uv_timer_start(&alive, ignore, 3600000, 3600000);
    }
    settings_init(&here.settings);
    here.store = open_ok(&place);
    start();
}

static void tear_down(void)
{
    events_flush(&here);
    store_close(here.store);
    place_remove(&place);
}

/* The front is gone without a word; another one begins. */
static void die(void)
{
    store_close(here.store);
    here.store = open_ok(&place);
    start();
}

static void end_well(void)
{
    events_flush(&here);
    die();
}

static uint64_t emit(const char *tenant, const char *sandbox_id)
{
    event_emit(&here, HAPPENED_SANDBOX_CREATED,
               &(struct event_about){.tenant = tenant, .sandbox_id = sandbox_id});
    return events_last(&here);
}

struct got {
    struct event events[64];
    char json[64][512];
    size_t n, max;
    bool gap;
};

static bool take(const struct event *e, void *arg)
{
    struct got *g = arg;

    snprintf(g->json[g->n], sizeof(g->json[0]), "%s", e->json);
    g->events[g->n] = *e;
    g->events[g->n].json = g->json[g->n];
    return ++g->n < g->max;
}

static const struct got *since(const char *tenant, uint64_t after)
{
    static struct got g;

    g = (struct got){.max = 64};
    events_since(&here, tenant, after, take, &g, &g.gap);
    return &g;
}

/* Until it is written. */
static void turn(void)
{
    uint64_t end = clock_ns() + 5000000000ull;
    struct store_events_state s = {0};

    while (clock_ns() < end && s.last < events_last(&here)) {
        uv_run(here.loop, UV_RUN_NOWAIT);
        usleep(1000);
        EXPECT(store_events_state(here.store, &s, NULL) == 0);
    }
    EXPECT(s.last == events_last(&here));
}

/* ---------------------------------------------------------------------------------------------- */

TEST(an_event_is_told_whole)
{
    set_up();
    event_emit(&here, HAPPENED_CONTEXT_ENDED,
               &(struct event_about){.tenant = ACME,
                                     .sandbox_id = "ssssssssssssssssssss",
                                     .context = "cccccccccccccccccccc",
                                     .conversation = "talk \"1\"\n",
                                     .path = "main",
                                     .reason = "expired",
                                     .detail = "",
                                     .request = "r1"});
    const struct got *g = since(ACME, 0);
    EXPECT(g->n == 1 && !g->gap);
    EXPECT(g->events[0].id == 1 && g->events[0].kind == HAPPENED_CONTEXT_ENDED);
    EXPECT(strncmp(g->json[0], "{\"id\":1,\"type\":\"context.ended\",\"time\":\"20", 41) == 0);
    EXPECT(strstr(g->json[0], "\"conversationId\":\"talk \\\"1\\\"\\n\",\"pathId\":\"main\""));
    EXPECT(strstr(g->json[0], "\"reason\":\"expired\",\"requestId\":\"r1\"}"));
    tear_down();
}

TEST(tenants_see_their_own)
{
    set_up();
    emit(ACME, "s1");
    emit(OTHER, "s2");
    emit(ACME, "s3");
    event_emit(&here, HAPPENED_SANDBOX_ENDED, &(struct event_about){.sandbox_id = "nobody's"});
    EXPECT(since(ACME, 0)->n == 2 && since(ACME, 0)->events[1].id == 3);
    EXPECT(since(OTHER, 0)->n == 1 && since(OTHER, 1)->n == 1 && since(OTHER, 2)->n == 0);
    EXPECT(since(NULL, 0)->n == 4);
    end_well();
    EXPECT(since(ACME, 0)->n == 2 && since(ACME, 0)->events[1].id == 3);
    EXPECT(since(OTHER, 0)->n == 1);
    EXPECT(since(NULL, 0)->n == 4);
    tear_down();
}

TEST(numbers_go_on_after_an_end)
{
    set_up();
    for (int i = 0; i < 5; i++)
        emit(ACME, "s");
    end_well();
    EXPECT(events_last(&here) == 5);
    EXPECT(emit(ACME, "s") == 6);
    end_well();
    EXPECT(since(ACME, 0)->n == 6 && !since(ACME, 0)->gap);
    EXPECT(since(ACME, 5)->n == 1 && since(ACME, 5)->events[0].id == 6);
    tear_down();
}

TEST(no_number_is_used_twice_after_a_death)
{
    set_up();
    emit(ACME, "s1");
    turn();
    uint64_t lost = 0;
    for (int i = 0; i < 3000; i++)
        lost = emit(ACME, "lost");
    die();
    const struct got *g = since(ACME, 1);
    EXPECT(g->n == 1 && g->events[0].kind == EVENT_KIND_MAX_);
    EXPECT(strstr(g->json[0], "\"type\":\"gap\"") && strstr(g->json[0], "\"reason\":\"restart\""));
    EXPECT(g->events[0].id > lost);
    EXPECT(emit(ACME, "s2") > lost);
    EXPECT(since(OTHER, 1)->n == 1); /* everybody's */
    die();
    EXPECT(events_last(&here) > lost + 1);
    tear_down();
}

TEST(one_that_comes_alone_is_written_at_once)
{
    struct store_events_state s = {0};
    set_up();

    usleep(1000 * EVENTS_FLUSH_MS);
    uv_update_time(here.loop);
    emit(ACME, "s");
    uv_run(here.loop, UV_RUN_NOWAIT);
    EXPECT(store_events_state(here.store, &s, NULL) == 0 && s.last == 1);
    tear_down();
}

TEST(only_the_last_are_kept)
{
    set_up();
    here.settings.event_keep = 100;
    for (int i = 0; i < 250; i++) {
        emit(ACME, "s");
        if (i % 10 == 9)
            events_flush(&here);
    }
    end_well();
    uint64_t gone = events_gone(&here, ACME);
    EXPECT(gone >= 140 && gone <= 150);
    const struct got *g = since(ACME, 0);
    EXPECT(g->gap && g->n == 64 && g->events[0].id == gone + 1);
    g = since(ACME, gone);
    EXPECT(!g->gap && g->n == 64);
    EXPECT(since(ACME, 249)->n == 1 && since(ACME, 250)->n == 0);
    EXPECT(since(ACME, 251)->gap); /* of another server */
    tear_down();
}

/* One that makes thousands does not make others' go. */
TEST(each_tenant_has_its_own_last_ones)
{
    set_up();
    here.settings.event_keep = 50;
    for (int i = 0; i < 5; i++)
        emit(OTHER, "quiet");
    for (int i = 0; i < 1000; i++) {
        emit(ACME, "noisy");
        if (i % 10 == 9)
            events_flush(&here);
    }
    end_well();
    const struct got *g = since(OTHER, 0);
    EXPECT(!g->gap && g->n == 5 && g->events[0].id == 1 && strstr(g->json[4], "quiet"));
    EXPECT(events_gone(&here, OTHER) == 0 && events_gone(&here, NULL) == 0);
    EXPECT(since(ACME, 0)->gap && since(ACME, events_gone(&here, ACME))->n >= 50);
    /* The next front knows as much. */
    uint64_t gone = events_gone(&here, ACME);
    die();
    EXPECT(events_gone(&here, ACME) == gone && !since(OTHER, 0)->gap);
    tear_down();
}

TEST(what_is_in_memory_follows_what_is_in_the_store)
{
    set_up();
    for (int i = 0; i < EVENTS_KEPT + 20; i++)
        emit(ACME, "s");
    const struct got *g = since(ACME, 5);
    EXPECT(!g->gap && g->n == 64);
    for (size_t i = 0; i < g->n; i++)
        EXPECT(g->events[i].id == 6 + i);
    g = since(ACME, EVENTS_KEPT - 5);
    EXPECT(g->n == 25 && g->events[24].id == EVENTS_KEPT + 20);
    tear_down();
}

static unsigned seen;

static void on_event(struct event_watch *w, const struct event *e)
{
    EXPECT(e->json[0] == '{');
    seen++;
    if (seen == 3)
        events_unwatch(w);
}

TEST(who_watches_is_told)
{
    struct event_watch mine = {.on_event = on_event, .tenant = ACME}, all = {.on_event = on_event};
    set_up();

    events_watch(&here, &mine);
    emit(ACME, "s");
    emit(OTHER, "s");
    EXPECT(seen == 1);
    events_watch(&here, &all);
    emit(OTHER, "s");
    EXPECT(seen == 2);
    emit(ACME, "s"); /* `all` leaves */
    EXPECT(seen == 4);
    events_unwatch(&mine);
    events_unwatch(&mine);
    emit(ACME, "s");
    EXPECT(seen == 4);
    tear_down();
}

TEST(a_store_that_fails_stops_nobody)
{
    set_up();
    emit(ACME, "s");
    turn();
    sqlite3_exec(here.store->db, "PRAGMA query_only = ON", NULL, NULL, NULL);
    for (int i = 0; i < EVENTS_KEPT + 10; i++)
        emit(ACME, "s");
    uv_run(here.loop, UV_RUN_NOWAIT);
    EXPECT(events_last(&here) == EVENTS_KEPT + 11);
    const struct got *g = since(ACME, 1);
    EXPECT(g->gap && g->n == 64); /* those that there was no room for are gone */
    EXPECT(since(ACME, EVENTS_KEPT)->n == 11);
    sqlite3_exec(here.store->db, "PRAGMA query_only = OFF", NULL, NULL, NULL);
    tear_down();
}

TEST(long_texts_are_cut)
{
    char text[5000];
    set_up();

    memset(text, '\x01', sizeof(text));
    text[sizeof(text) - 1] = '\0';
    event_emit(&here, HAPPENED_EGRESS_BLOCKED,
               &(struct event_about){.tenant = ACME, .detail = text});
    EXPECT(since(ACME, 0)->n == 1);
    tear_down();
}

TEST(kinds_can_be_named)
{
    uint32_t kinds = 0;
    struct sg_error e = {0};

    EXPECT(event_types_parse("types", "sandbox.created, context.ended", &kinds, &e) == 0);
    EXPECT(kinds == (1u << HAPPENED_SANDBOX_CREATED | 1u << HAPPENED_CONTEXT_ENDED));
    EXPECT(event_types_parse("types", "agent.*", &kinds, &e) == 0);
    EXPECT(kinds == (1u << HAPPENED_AGENT_STARTED | 1u << HAPPENED_AGENT_ENDED));
    EXPECT(event_types_parse("types", "*", &kinds, &e) == 0);
    EXPECT(kinds == (1u << EVENT_KIND_MAX_) - 1);
    EXPECT(event_types_parse("types", "", &kinds, &e) < 0);
    EXPECT(event_types_parse("types", "sandbox.create", &kinds, &e) < 0);
    EXPECT(strstr(e.message, "'sandbox.create'"));
    EXPECT(event_types_parse("types", "sandbox.*,", &kinds, &e) < 0);
    EXPECT(event_types_parse("types", "sandbox.* context.*", &kinds, &e) < 0);
    EXPECT(event_types_parse("types", "gap", &kinds, &e) < 0);
}

TAP_MAIN
