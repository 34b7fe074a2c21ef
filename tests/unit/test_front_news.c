/* Who hears of a connection that the guard tells of: figures, usage, events, traces. */
#include "tap.h"

#include "front/core/operation.h"
#include "front/core/events.h"
#include "front/core/news.h"
#include "front/core/usage.h"
#include "front/telemetry/figures.h"

TAP_MAIN

#define TENANT "aaaaaaaaaaaaaaaaaaaa"

static unsigned n_events, n_operations;
static uint64_t up_all, down_all;
static char last_detail[256], last_sandbox[ID_LEN + 1];

void event_emit(struct front *f, enum event_kind kind, const struct event_about *about)
{
    (void)f;
    EXPECT(kind == HAPPENED_EGRESS_BLOCKED);
    EXPECT_STR(about->tenant, TENANT);
    snprintf(last_detail, sizeof(last_detail), "%s", about->detail);
    snprintf(last_sandbox, sizeof(last_sandbox), "%s", about->sandbox_id);
    n_events++;
}

void usage_egress(struct front *f, const char *tenant, const char *id, uint64_t up, uint64_t down)
{
    (void)f;
    EXPECT_STR(tenant, TENANT);
    EXPECT(strlen(id) == ID_LEN);
    up_all += up;
    down_all += down;
}

void operation_egress(struct front *f, const struct egress_news *n)
{
    (void)f, (void)n;
    n_operations++;
}

static void begin(void)
{
    n_events = n_operations = 0;
    up_all = down_all = 0;
    egress_news_start();
}

static struct egress_news one(const char *id, enum egress_verdict verdict, const char *protocol)
{
    struct egress_news n = {.verdict = (uint8_t)verdict,
                            .tenant = TENANT,
                            .target = "evil.test",
                            .why = "deny evil.test",
                            .port = 443,
                            .took_ms = 40};

    snprintf(n.id, sizeof(n.id), "%s", id);
    snprintf(n.protocol, sizeof(n.protocol), "%s", protocol);
    return n;
}

/* The value of a figure; -1: there is none. */
static double figure(const char *name)
{
    AUTO(strbuf_done) struct strbuf out = {0};
    char line[256];
    double v = -1;

    strbuf_init(&out, FIGURES_TEXT_MAX);
    figures_print(&out);
    snprintf(line, sizeof(line), "\nsandglass_%s ", name);
    const char *at = strstr(out.buf, line);
    if (at)
        v = strtod(at + strlen(line), NULL);
    return v;
}

TEST(one_that_went_well)
{
    struct egress_news n = one("goodgoodgoodgoodgood", VERDICT_ALLOWED, "tcp");

    begin();
    double flows = figure("egress_flows_total{verdict=\"allowed\"}"),
           in = figure("egress_bytes_total{direction=\"in\"}");
    n.up = 100;
    n.down = 2000;
    egress_news_take(NULL, &n, 1);
    EXPECT(n_events == 0 && n_operations == 1 && up_all == 100 && down_all == 2000);
    EXPECT(figure("egress_flows_total{verdict=\"allowed\"}") == flows + 1);
    EXPECT(figure("egress_bytes_total{direction=\"in\"}") == in + 2000);
    EXPECT(figure("egress_flow_seconds_bucket{le=\"0.05\"}") >= 1);
}

TEST(one_that_was_refused)
{
    struct egress_news n = one("evilevilevilevilevil", VERDICT_BLOCKED, "tcp");

    begin();
    egress_news_take(NULL, &n, 1);
    EXPECT(n_events == 1 && n_operations == 1 && up_all == 0);
    EXPECT_STR(last_detail, "evil.test:443: deny evil.test");
    EXPECT_STR(last_sandbox, "evilevilevilevilevil");
    EXPECT(figure("egress_blocked_total{target=\"evil.test\"}") >= 1);
}

TEST(a_name_is_no_connection)
{
    struct egress_news n = one("namenamenamenamename", VERDICT_BLOCKED, "dns");

    begin();
    double flows = figure("egress_flows_total{verdict=\"blocked\"}");
    n.port = 0;
    snprintf(n.target, sizeof(n.target), "name.test");
    egress_news_take(NULL, &n, 1);
    EXPECT(figure("egress_flows_total{verdict=\"blocked\"}") == flows);
    EXPECT(figure("egress_blocked_total{target=\"name.test\"}") == 1);
    EXPECT_STR(last_detail, "name.test: deny evil.test");
    n.target[0] = '\0';
    egress_news_take(NULL, &n, 1);
    EXPECT(figure("egress_blocked_total{target=\"unknown\"}") == 1);
}

/* A flood of refusals is counted, and told of a few times; another sandbox has its own turn. */
TEST(events_are_few)
{
    struct egress_news n[100];

    begin();
    for (size_t i = 0; i < ARRAY_SIZE(n); i++)
        n[i] = one("floodfloodfloodflood", VERDICT_BLOCKED, "udp");
    egress_news_take(NULL, n, ARRAY_SIZE(n));
    EXPECT(n_events >= NEWS_EVENTS_A_SECOND && n_events <= NEWS_EVENTS_A_SECOND + 2);
    EXPECT(n_operations == ARRAY_SIZE(n));
    n_events = 0;
    n[0] = one("quietquietquietquiet", VERDICT_BLOCKED, "udp");
    egress_news_take(NULL, n, 1);
    EXPECT(n_events == 1);
}

TEST(nobody_was_there)
{
    struct egress_news n = one("awayawayawayawayaway", VERDICT_FAILED, "tcp");

    begin();
    double flows = figure("egress_flows_total{verdict=\"failed\"}"),
           seconds = figure("egress_flow_seconds_count");
    egress_news_take(NULL, &n, 1);
    EXPECT(n_events == 0 && n_operations == 1);
    EXPECT(figure("egress_flows_total{verdict=\"failed\"}") == flows + 1);
    EXPECT(figure("egress_flow_seconds_count") == seconds);
}
