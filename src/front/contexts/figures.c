/* For /metrics: the number of contexts whose sandboxes this server has. */
#include "front/contexts/impl.h"
#include "front/core/figures.h"
#include "front/telemetry/figures.h"

struct tally {
    unsigned creating, running, paused;
};

static void count_one(struct tally *t, const struct context *c)
{
    if (!c->sandbox)
        t->creating += !list_empty(&c->waiters);
    else if (c->sandbox->state == SANDBOX_PAUSED)
        t->paused++;
    else
        t->running++;
}

static void count(struct front *f)
{
    struct tally t = {0};

    if (f->contexts)
        MAP_EACH(struct context, c, &f->contexts->all, by_path)
            count_one(&t, c);
    figure_set(FIG_CONTEXTS, "creating", t.creating);
    figure_set(FIG_CONTEXTS, "running", t.running);
    figure_set(FIG_CONTEXTS, "paused", t.paused);
}

void contexts_have_figures(void)
{
    figures_on_scrape(count);
}
