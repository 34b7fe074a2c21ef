/* The first steps of a new sandbox, from clone to agent. See stage.h for what comes before. */
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "inside/agent/agent.h"
#include "inside/agent/disk.h"
#include "lib/base/err.h"
#include "lib/base/fd.h"
#include "lib/ipc/ipc.h"
#include "lib/base/sys.h"
#include "inside/stage/confine.h"
#include "inside/stage/defences.h"
#include "inside/stage/stage.h"
#include "inside/stage/view.h"

#define CHANNEL_FD 3

/* The spawner compiles the filters once; every sandbox inherits them. */
static struct seccomp_prog filter, agent_filter;

int stage_prepare(struct sg_error *e)
{
    int r = seccomp_compile(SECCOMP_PROGRAM, &filter, e);

    return r < 0 ? r : seccomp_compile(SECCOMP_AGENT, &agent_filter, e);
}

static int receive_setup(struct stage_setup *ret, struct ipc_fds *fds, struct sg_error *e)
{
    ssize_t got = ipc_recv(CHANNEL_FD, ret, sizeof(*ret), fds);

    if (got == 0)
        _exit(0); /* the warden no longer needs this sandbox */
    if (got != (ssize_t)sizeof(*ret) || ret->magic != STAGE_MAGIC ||
        ret->n_mounts > STAGE_MOUNTS_MAX ||
        fds->n != STAGE_FIXED_FDS + ret->n_mounts +
                      ((ret->flags & STAGE_SCRATCH_STORE) != 0 ? STAGE_FIGURES : 0))
        return err_set(e, SG_ERR_INTERNAL, -EPROTO, "the stage received a malformed setup");
    return 0;
}

/* Writing "0" moves the writer into the group. The warden opened the descriptors, so its rights
 * count. */
static int join_cgroups(const int *fds, size_t n, struct sg_error *e)
{
    for (size_t i = 0; i < n; i++)
        if (write(fds[i], "0", 1) != 1)
            return err_errno(e, "join control group %zu", i);
    /* Comes after joining: it makes the sandbox's own groups the root of what the sandbox can
     * see. */
    if (unshare(CLONE_NEWCGROUP) < 0)
        return err_errno(e, "make a cgroup namespace");
    return 0;
}

/* Does everything that does not depend on stage_setup. Moves the channel to a fixed number, and
 * closes every other descriptor of the spawner. */
static int prepare(int channel_fd, const int *cgroup_fds, const struct spawn_request *q,
                   struct view_fds *ret_view, struct sg_error *e)
{
    int r = confine_ids(0, 0);

    if (r < 0)
        return err_code(e, r, "become root of the sandbox");
    r = join_cgroups(cgroup_fds, q->n_cgroups, e);
    if (r < 0)
        return r;
    if (channel_fd != CHANNEL_FD && dup3(channel_fd, CHANNEL_FD, O_CLOEXEC) < 0)
        return err_errno(e, "move the channel");
    if (sys_close_range(CHANNEL_FD + 1, ~0U, 0) < 0)
        return err_errno(e, "close the spawner's descriptors");
    return root_build(q, ret_view, e);
}

/* Closes what has come with the setup and is in its place now. Keeps the figures of the disk. */
static void close_setup(const struct stage_setup *setup, const struct ipc_fds *fds,
                        const struct view_fds *view)
{
    unsigned end = view_end(view, CHANNEL_FD);

    if (setup->flags & STAGE_SCRATCH_STORE) {
        int figures[STAGE_FIGURES];
        for (size_t i = 0; i < STAGE_FIGURES; i++)
            figures[i] = dup3(fds->at[fds->n - STAGE_FIGURES + i], (int)end++, O_CLOEXEC);
        disk_use_figures(figures);
    }
    sys_close_range(end, ~0U, 0);
}

static int finish(unsigned omit, const struct view_fds *view, struct agent_config *config,
                  struct sg_error *e)
{
    struct stage_setup setup;
    struct ipc_fds fds = {.max = STAGE_FDS_MAX};
    int r = receive_setup(&setup, &fds, e);

    if (r < 0)
        return r;
    r = root_enter(&setup, fds.at, omit, e);
    if (r < 0)
        return r;
    if (sethostname(setup.hostname, strnlen(setup.hostname, sizeof(setup.hostname))) < 0)
        return err_errno(e, "set the host name");
    close_setup(&setup, &fds, view);
    *config = (struct agent_config){.filter = &filter,
                                    .agent_filter = &agent_filter,
                                    .disk_bytes = setup.disk_bytes,
                                    .pids = setup.pids,
                                    .cpus = setup.cpus,
                                    .view = view,
                                    .line = (setup.flags & STAGE_LINE) != 0,
                                    .twins = (setup.flags & STAGE_TWINS) != 0,
                                    .omit = omit};
    return confine_agent(config, e);
}

void stage_main(int channel_fd, const int *cgroup_fds, const struct spawn_request *q)
{
    struct view_fds view = VIEW_NONE;
    struct agent_config config;
    struct stage_reply reply = {0};
    struct sg_error e = {0};
    int r;

    prctl(PR_SET_NAME, "sg-agent");
    umask(022);
    r = prepare(channel_fd, cgroup_fds, q, &view, &e);
    if (r == 0)
        r = finish(q->omit, &view, &config, &e);
    reply.code = r;
    reply.kind = (int32_t)e.kind;
    snprintf(reply.message, sizeof(reply.message), "%.255s", e.message);
    if (fd_write_all(CHANNEL_FD, &reply, sizeof(reply)) < 0 || r < 0)
        _exit(1);
    agent_serve(CHANNEL_FD, &config);
    _exit(0);
}
