#include "guard/counts.h"

static struct count *count_of(struct guard *g, const char *name)
{
    for (size_t i = 0; i < g->n_sanitised; i++)
        if (strncmp(g->sanitised[i].name, name, COUNTS_NAME_MAX) == 0)
            return &g->sanitised[i];
    if (g->n_sanitised == COUNTS_KINDS_MAX)
        return NULL;
    struct count *c = &g->sanitised[g->n_sanitised++];
    snprintf(c->name, sizeof(c->name), "%s", name);
    return c;
}

void counts_sanitised(struct guard *g, const char *kind, uint64_t n)
{
    struct count *c;

    if (!g->sanitised) /* the last is shared by kinds that have no place */
        g->sanitised = xcalloc(COUNTS_KINDS_MAX + 1, sizeof(*g->sanitised));
    c = count_of(g, kind);
    if (!c) {
        c = &g->sanitised[COUNTS_KINDS_MAX];
        snprintf(c->name, sizeof(c->name), "other");
    }
    c->n += n;
}
