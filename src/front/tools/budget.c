#include "front/tools/budget.h"

static size_t used;

bool budget_hold(size_t *taken, size_t bytes)
{
    size_t wanted = bytes > BUDGET_FREE ? bytes - BUDGET_FREE : 0;

    if (wanted > *taken && wanted - *taken > BUDGET_MAX - used)
        return false;
    used += wanted - *taken;
    *taken = wanted;
    return true;
}
