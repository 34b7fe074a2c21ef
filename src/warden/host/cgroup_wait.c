#include "warden/host/cgroup_wait.h"

#include <time.h>

#define FREEZE_MS 2000

uint64_t cgroup_peak(const struct cgroup *c)
{
    return cgroup_read_u64(c->dir[0], c->ops->peak_file);
}

int cgroup_freeze(struct cgroup *c, bool on, struct sg_error *e)
{
    int r = cgroup_ask_freeze(c, on, e);

    for (int tries = 0; r == 0 && on && !c->ops->frozen(c); tries++) {
        if (tries == FREEZE_MS * 5)
            return err_set(e, SG_ERR_INTERNAL, -ETIMEDOUT,
                           "the control group did not freeze in time");
        nanosleep(&(struct timespec){.tv_nsec = 200000}, NULL);
    }
    return r;
}
