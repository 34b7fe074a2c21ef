/* The number of agents, for /metrics. */
#include "front/acp/agents.h"
#include "front/core/figures.h"
#include "front/telemetry/figures.h"

static void count(struct front *f)
{
    size_t running, ended;

    agents_count(f, &running, &ended);
    figure_set(FIG_AGENTS, "running", (double)running);
    figure_set(FIG_AGENTS, "ended", (double)ended);
}

void agents_have_figures(void)
{
    figures_on_scrape(count);
}
