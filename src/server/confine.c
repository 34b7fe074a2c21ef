#include "server/confine.h"

#include <sys/syscall.h>

#include "base/filter.h"

int confine_front(struct sg_error *e)
{
    static const int refused[] = {SYS_bind, SYS_socket, SYS_connect};

    return filter_load(&(struct filter){.refused = refused, .n_refused = ARRAY_SIZE(refused)},
                       "front", e);
}

/* The clerk does nothing but talk to a database. */
int confine_clerk(struct sg_error *e)
{
    static const int refused[] = {SYS_bind};

    return filter_load(&(struct filter){.refused = refused, .n_refused = ARRAY_SIZE(refused)},
                       "clerk", e);
}
