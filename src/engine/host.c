/* Questions about the host as a whole. */
#include "lib/text/strbuf.h"
#include "engine/sandbox.h"
#include "warden/host/cgroup_place.h"
#include "warden/host/slots.h"
#include "warden/host/slots_count.h"
#include "inside/stage/seccomp.h"

int sg_host_state(struct sg_host_state *ret, struct sg_error *e)
{
    struct sg_host_state state = {.groups_stale = cgroup_sweep_places(false)};
    int r = slots_count(&state.slots_used, &state.slots_stale, e);

    if (r == 0)
        *ret = state;
    return r;
}

int sg_host_sweep(struct sg_error *e)
{
    return slots_sweep_all(e);
}

char *sg_syscall_policy(void)
{
    struct strbuf text;

    strbuf_init(&text, 1u << 20);
    seccomp_explain(&text);
    return strbuf_detach(&text, NULL);
}
