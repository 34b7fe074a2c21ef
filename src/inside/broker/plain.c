/* Makes a kernel with a plain zygote: sends one packet with all that the child must do to itself,
 * and gets an answer with the child's pid. The zygote is the child's parent, and lets Linux reap
 * it. */
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "lib/base/fault.h"
#include "inside/agent/agent.h"
#include "lib/base/clock.h"
#include "lib/base/fd.h"
#include "lib/ipc/ipc.h"
#include "inside/stage/confine.h"
#include "inside/broker/kernel.h"
#include "inside/broker/procfs.h"

#define ANSWER_NS 5000000000ull

/* plain.py unpacks this. */
struct plain_request {
    char what[8]; /* "fork" */
    uint32_t uid, gid, n_doors, n_limits;
    struct {
        uint64_t resource, soft, hard;
    } limits[CONFINE_LIMITS];
    uint32_t filter_len, pad;
    struct sock_filter filter[SECCOMP_PROG_MAX];
};

static int fill(const struct zygote *z, const struct twin_request *q, struct plain_request *ret)
{
    const struct agent_user *as = agent_user_find("user");
    struct agent_config config = {.pids = q->pids, .disk_bytes = q->disk_bytes};
    struct confine_limit limits[CONFINE_LIMITS];
    int r = confine_limits(&config, limits);

    if (r < 0)
        return r;
    *ret = (struct plain_request){.what = "fork",
                                  .uid = as->uid,
                                  .gid = as->gid,
                                  .n_doors = q->n_doors,
                                  .n_limits = CONFINE_LIMITS,
                                  .filter_len = z->filter->len};
    for (size_t i = 0; i < CONFINE_LIMITS; i++) {
        ret->limits[i].resource = (uint64_t)limits[i].resource;
        ret->limits[i].soft = limits[i].value.rlim_cur;
        ret->limits[i].hard = limits[i].value.rlim_max;
    }
    memcpy(ret->filter, z->filter->insns, z->filter->len * sizeof(z->filter->insns[0]));
    return 0;
}

static pid_t pid_inside(pid_t pid)
{
    AUTO(close_p) int dir = -1;
    struct procfs_status status;

    return procfs_open(pid, &dir) == 0 && procfs_status(dir, &status) == 0 ? status.inside : 0;
}

static int take_answer(struct zygote *z, pid_t *ret, struct sg_error *e)
{
    uint64_t deadline = clock_ns() + ANSWER_NS;
    struct pollfd p = {.fd = z->control, .events = POLLIN};
    char text[256];
    ssize_t n = -1;

    if (poll(&p, 1, clock_poll_ms(deadline)) == 1)
        n = recv(z->control, text, sizeof(text) - 1, MSG_DONTWAIT);
    z->broken = n <= 0;
    if (n <= 0)
        return err_set(e, SG_ERR_INTERNAL, -EIO, "the zygote did not answer");
    text[n] = '\0';
    if (sscanf(text, "pid %d", ret) == 1 && *ret > 0)
        return 0;
    return err_set(e, SG_ERR_INTERNAL, -EIO, "the zygote could not fork: %.200s", text);
}

int kernel_make_plain(struct zygote *z, const struct twin_request *q, const int *fds,
                      struct kernel *ret, struct sg_error *e)
{
    struct plain_request p;
    size_t n = TWIN_KERNEL_FDS + q->n_doors + 1;
    int r = fill(z, q, &p);

    if (r == 0)
        r = ipc_send(z->control, &p, sizeof(p), fds, n);
    if (r < 0)
        return err_internal(e, r, "ask the zygote");
    r = take_answer(z, &ret->k, e);
    if (r < 0)
        return r;
    ret->h = ret->k;
    ret->k_inside = pid_inside(ret->k);
    return ret->k_inside > 0 ? 0 : err_set(e, SG_ERR_GONE, -ESRCH, "the kernel has ended at once");
}
