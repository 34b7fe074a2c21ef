/* For /metrics: the number of contexts whose sandboxes this server has. */
#include "front/contexts/impl.h"
#include "front/core/figures.h"
#include "front/telemetry/figures.h"

struct tally {
    unsigned creating, running, paused;
};

static void count_one(struct context *c, void *arg)
{
    struct tally *t = arg;

    if (!c->sandbox)
        t->creating += c->waiters != NULL;
    else if (c->sandbox->state == SANDBOX_PAUSED)
        t->paused++;
    else
        t->running++;
}

static void count(struct front *f)
{
    struct tally t = {0};

    if (f->contexts)
        contexts_each(f, count_one, &t);
    figure_set(FIG_CONTEXTS, "creating", t.creating);
    figure_set(FIG_CONTEXTS, "running", t.running);
    figure_set(FIG_CONTEXTS, "paused", t.paused);
}

void contexts_have_figures(void)
{
    figures_on_scrape(count);
}
