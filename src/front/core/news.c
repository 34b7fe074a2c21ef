#include "front/core/news.h"

#include <stdio.h>
#include <string.h>

#include "front/core/operation.h"
#include "front/core/events.h"
#include "front/core/rate.h"
#include "front/core/usage.h"
#include "front/telemetry/figures.h"

static const char *const verdicts[] = {
    [VERDICT_ALLOWED] = "allowed", [VERDICT_BLOCKED] = "blocked", [VERDICT_FAILED] = "failed"};
_Static_assert(ARRAY_SIZE(verdicts) == VERDICT_MAX_, "a word for each verdict");

static struct rate_table told;

const char *egress_verdict_name(uint8_t verdict)
{
    return verdict < VERDICT_MAX_ && verdicts[verdict] ? verdicts[verdict] : "unknown";
}

void egress_news_start(void)
{
    for (size_t v = VERDICT_ALLOWED; v < VERDICT_MAX_; v++)
        figure_add(FIG_EGRESS_FLOWS, verdicts[v], 0);
    figure_add(FIG_EGRESS_BYTES, "out", 0);
    figure_add(FIG_EGRESS_BYTES, "in", 0);
}

/* Counts one piece of news. A DNS name that was refused counts as a blocked target but not as a
 * connection, since there was none yet. */
static void count(const struct egress_news *n)
{
    bool connection = strcmp(n->protocol, "tcp") == 0 || strcmp(n->protocol, "udp") == 0;

    if (connection)
        figure_add(FIG_EGRESS_FLOWS, verdicts[n->verdict], 1);
    if (n->verdict == VERDICT_BLOCKED)
        figure_add(FIG_EGRESS_BLOCKED, n->target[0] ? n->target : "unknown", 1);
    else if (connection && n->verdict == VERDICT_ALLOWED)
        figure_observe(FIG_EGRESS_SECONDS, NULL, (uint64_t)n->took_ms * 1000000);
    figure_add(FIG_EGRESS_BYTES, "out", (double)n->up);
    figure_add(FIG_EGRESS_BYTES, "in", (double)n->down);
}

static void tell(struct front *f, const struct egress_news *n)
{
    char detail[sizeof(n->target) + sizeof(n->why) + 16];
    struct event_about about = {
        .tenant = n->tenant, .sandbox_id = n->id, .reason = n->protocol, .detail = detail};

    if (!rate_take(&told, n->id, NEWS_EVENTS_A_SECOND, NEWS_EVENTS_A_SECOND))
        return;
    if (n->port)
        snprintf(detail, sizeof(detail), "%s:%u: %s", n->target, n->port, n->why);
    else
        snprintf(detail, sizeof(detail), "%s: %s", n->target, n->why);
    event_emit(f, HAPPENED_EGRESS_BLOCKED, &about);
}

void egress_news_take(struct front *f, const struct egress_news *news, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        count(&news[i]);
        if (news[i].up > 0 || news[i].down > 0)
            usage_egress(f, news[i].tenant, news[i].id, news[i].up, news[i].down);
        if (news[i].verdict == VERDICT_BLOCKED)
            tell(f, &news[i]);
        operation_egress(f, &news[i]);
    }
}
