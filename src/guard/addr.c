/* The question before every connect(). */
#include "guard/addr.h"

#include "guard/guard.h"

static const char *never_dials(const struct guard *g, const struct net_addr *a)
{
    const char *why = net_addr_refusal(a);

    if (internal_set_has(g->internal, a))
        return NULL;
    if (why)
        return why;
    return g->hosts && hosts_has(g->hosts, a) ? "address of this machine" : NULL;
}

const char *guard_never_dials(const struct guard *g, const struct net_addr *a)
{
    struct net_addr carried;
    const char *why = never_dials(g, a);

    if (!why && net_addr_carried(a, &carried))
        why = never_dials(g, &carried);
    return why;
}
