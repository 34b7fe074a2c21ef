/* Copies of kernels that ran, from the line to the context that adopts them. Each is told at once
 * that it is a copy, and is usually ready by the time the host says which context it belongs to. */
#include "inside/agent/kernels.h"

void kernel_arrives(struct kernel *k)
{
    struct kernels *t = &k->agent->kernels;

    if (t->n_arrived == KERNELS_MAX) {
        kernel_free(k);
        return;
    }
    k->next = t->arrived;
    t->arrived = k;
    t->n_arrived++;
    kernel_queue(k, 'Y', "");
}

struct kernel *kernel_arrived(const struct agent *a, uint32_t was)
{
    struct kernel *k = a->kernels.arrived;

    while (k && (uint32_t)k->was != was)
        k = k->next;
    return k;
}

void kernel_leaves(struct kernel *k)
{
    struct kernels *t = &k->agent->kernels;
    struct kernel **p = &t->arrived;

    while (*p && *p != k)
        p = &(*p)->next;
    if (!*p)
        return;
    *p = k->next;
    k->next = NULL;
    t->n_arrived--;
}

void kernels_arrived_free(struct agent *a)
{
    while (a->kernels.arrived) {
        struct kernel *k = a->kernels.arrived;

        kernel_leaves(k);
        kernel_free(k);
    }
}
