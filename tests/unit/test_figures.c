/* Figures, and their text: what promtool and a Prometheus would refuse, or count wrong. */
#include "tap.h"

#include "front/telemetry/figures.h"

TAP_MAIN

/* All of it; valid until the next. */
static const char *text(void)
{
    static struct strbuf out;

    if (!out.max)
        strbuf_init(&out, FIGURES_TEXT_MAX);
    strbuf_reset(&out);
    figures_print(&out);
    EXPECT(!out.truncated);
    return out.buf;
}

/* Whether that is a line of it. */
static bool has(const char *line)
{
    const char *all = text();
    size_t len = strlen(line);

    for (const char *p = strstr(all, line); p; p = strstr(p + 1, line))
        if ((p == all || p[-1] == '\n') && p[len] == '\n')
            return true;
    return false;
}

static size_t lines_with(const char *start)
{
    const char *all = text();
    size_t n = 0, len = strlen(start);

    for (const char *p = all; *p; p = strchr(p, '\n') + 1)
        n += strncmp(p, start, len) == 0;
    return n;
}

TEST(what_has_no_label_is_there_from_the_start)
{
    EXPECT(has("# TYPE sandglass_checkpoints gauge"));
    EXPECT(has("sandglass_checkpoints 0"));
    EXPECT(has("sandglass_egress_flow_seconds_bucket{le=\"+Inf\"} 0"));
    EXPECT(has("sandglass_egress_flow_seconds_sum 0.000000000"));
    EXPECT(has("sandglass_egress_flow_seconds_count 0"));
    EXPECT(!strstr(text(), "sandglass_webhook_posts_total"));
}

TEST(counters_and_gauges)
{
    figure_add(FIG_REQUESTS, "2xx", 1);
    figure_add(FIG_REQUESTS, "2xx", 2);
    figure_add(FIG_REQUESTS, "5xx", 0);
    figure_set(FIG_POOL, NULL, 7);
    figure_set(FIG_POOL, NULL, 3);
    figure_total(FIG_CPU, "front", 1.25);
    EXPECT(has("# TYPE sandglass_http_requests_total counter"));
    EXPECT(has("sandglass_http_requests_total{status=\"2xx\"} 3"));
    EXPECT(has("sandglass_http_requests_total{status=\"5xx\"} 0"));
    EXPECT(has("sandglass_pool_sandboxes 3"));
    EXPECT(has("sandglass_process_cpu_seconds_total{process=\"front\"} 1.25"));
    EXPECT(lines_with("# HELP sandglass_http_requests_total ") == 1);
}

TEST(large_numbers_are_exact)
{
    figure_add(FIG_EGRESS_BYTES, "up", 9007199254740991.0);
    EXPECT(has("sandglass_egress_bytes_total{direction=\"up\"} 9007199254740991"));
}

TEST(a_histogram_adds_up)
{
    figure_observe(FIG_PAUSE, "memory", 250000);      /* a bound is in its bucket */
    figure_observe(FIG_PAUSE, "memory", 250001);      /* and not one more */
    figure_observe(FIG_PAUSE, "memory", 61000000000); /* beyond all */
    EXPECT(has("# TYPE sandglass_sandbox_pause_seconds histogram"));
    EXPECT(has("sandglass_sandbox_pause_seconds_bucket{kind=\"memory\",le=\"0.00025\"} 1"));
    EXPECT(has("sandglass_sandbox_pause_seconds_bucket{kind=\"memory\",le=\"0.0005\"} 2"));
    EXPECT(has("sandglass_sandbox_pause_seconds_bucket{kind=\"memory\",le=\"60\"} 2"));
    EXPECT(has("sandglass_sandbox_pause_seconds_bucket{kind=\"memory\",le=\"+Inf\"} 3"));
    EXPECT(has("sandglass_sandbox_pause_seconds_sum{kind=\"memory\"} 61.000500001"));
    EXPECT(has("sandglass_sandbox_pause_seconds_count{kind=\"memory\"} 3"));
    EXPECT(lines_with("sandglass_sandbox_pause_seconds_bucket") == 18);
}

TEST(what_is_not_known_is_left_out)
{
    figure_set(FIG_UP, "guard", 1);
    figure_set(FIG_UP, "warden", 1);
    figure_forget(FIG_UP, "guard");
    figure_forget(FIG_UP, "nobody");
    EXPECT(!strstr(text(), "sandglass_up{process=\"guard\"}"));
    EXPECT(has("sandglass_up{process=\"warden\"} 1"));
    figure_forget(FIG_UP, "warden");
    EXPECT(lines_with("# TYPE sandglass_up ") == 0);
    figure_set(FIG_UP, "guard", 0);
    EXPECT(has("sandglass_up{process=\"guard\"} 0"));
}

TEST(labels_from_outside)
{
    static const struct {
        const char *from, *to;
    } cases[] = {
        {"a\"b\\c", "a\\\"b\\\\c"},
        {"new\nline", "new\xef\xbf\xbdline"},
        {"\x7f", "\xef\xbf\xbd"},
        {"caf\xc3\xa9", "caf\xc3\xa9"},
        {"\xff\xfe", "\xef\xbf\xbd\xef\xbf\xbd"},
        {"\xed\xa0\x80", "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd"}, /* half of a pair */
        {"cut\xe2\x82", "cut\xef\xbf\xbd\xef\xbf\xbd"},
        {"", ""},
    };
    char line[512];

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        figure_add(FIG_EGRESS_BLOCKED, cases[i].from, 1);
        snprintf(line, sizeof(line), "sandglass_egress_blocked_total{target=\"%s\"} 1",
                 cases[i].to);
        EXPECT(has(line));
    }
}

TEST(a_long_label_is_cut_between_characters)
{
    char value[1000], line[1100];
    size_t n = 0;

    memset(value, 'x', FIGURE_LABEL_MAX - 1);
    memcpy(value + FIGURE_LABEL_MAX - 1, "\xc3\xa9 and more", 12);
    figure_add(FIG_EGRESS_BLOCKED, value, 1);
    value[FIGURE_LABEL_MAX - 1] = '\0';
    snprintf(line, sizeof(line), "sandglass_egress_blocked_total{target=\"%s\"} 1", value);
    EXPECT(has(line));
    /* As long as may be: it stays. */
    memset(value, 'y', FIGURE_LABEL_MAX);
    value[FIGURE_LABEL_MAX] = '\0';
    figure_add(FIG_EGRESS_BLOCKED, value, 1);
    snprintf(line, sizeof(line), "sandglass_egress_blocked_total{target=\"%s\"} 1", value);
    EXPECT(has(line));
    /* All of it escaped. */
    memset(value, '"', FIGURE_LABEL_MAX);
    figure_add(FIG_EGRESS_BLOCKED, value, 1);
    for (const char *p = strstr(text(), "target=\"\\\""); p && *p != '}'; p++)
        n += *p == '\\';
    EXPECT(n == FIGURE_LABEL_MAX);
}

TEST(two_labels)
{
    char value[32];

    figure_add(FIG_FAILURES, "sandbox:timeout", 1);
    figure_add(FIG_FAILURES, "client:a:b", 1);
    figure_add(FIG_FAILURES, "agent", 1);
    EXPECT(has("sandglass_failures_total{layer=\"sandbox\",cause=\"timeout\"} 1"));
    EXPECT(has("sandglass_failures_total{layer=\"client\",cause=\"a:b\"} 1"));
    EXPECT(has("sandglass_failures_total{layer=\"agent\",cause=\"\"} 1"));
    for (int i = 0; i < 2 * FIGURE_VALUES_MAX; i++) {
        snprintf(value, sizeof(value), "client:c%d", i);
        figure_add(FIG_FAILURES, value, 1);
    }
    EXPECT(lines_with("sandglass_failures_total{") == FIGURE_VALUES_MAX + 1);
    EXPECT(lines_with("sandglass_failures_total{layer=\"other\",cause=\"other\"} 203") == 1);
}

TEST(more_values_than_there_may_be_are_other)
{
    char value[32];

    for (int i = 0; i < 3 * FIGURE_VALUES_MAX; i++) {
        snprintf(value, sizeof(value), "kind%d", i);
        figure_add(FIG_EVENTS, value, 1);
    }
    EXPECT(lines_with("sandglass_events_total{") == FIGURE_VALUES_MAX + 1);
    EXPECT(has("sandglass_events_total{kind=\"other\"} 400"));
    figure_add(FIG_EVENTS, "kind0", 1);
    EXPECT(has("sandglass_events_total{kind=\"kind0\"} 2"));
}
