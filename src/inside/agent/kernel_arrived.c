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
    list_push(&t->arrived, &k->link);
    t->n_arrived++;
    kernel_queue(k, 'Y', "");
}

struct kernel *kernel_arrived(const struct agent *a, uint32_t was)
{
    return LIST_FIND(struct kernel, k, &a->kernels.arrived, link, (uint32_t)k->was == was);
}

void kernel_leaves(struct kernel *k)
{
    k->agent->kernels.n_arrived -= list_linked(&k->link);
    list_remove(&k->link);
}

void kernels_arrived_free(struct agent *a)
{
    LIST_EACH(struct kernel, k, &a->kernels.arrived, link) {
        kernel_leaves(k);
        kernel_free(k);
    }
}
