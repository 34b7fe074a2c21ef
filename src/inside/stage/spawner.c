/* Holder and spawner of a domain.
 *
 * The holder is pid 1 of W. All it does is to send back the byte that shows that it lives. When it
 * ends, because the warden closed its socket or died, the kernel ends everything in W. The spawner
 * clones sandboxes, one request at a time. */
#include <fcntl.h>
#include <grp.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include "lib/base/fault.h"
#include "lib/base/fd.h"
#include "lib/ipc/ipc.h"
#include "lib/base/sys.h"
#include "inside/stage/confine.h"
#include "inside/stage/defences.h"
#include "inside/stage/seccomp.h"
#include "inside/stage/stage.h"

static int reply(int to, int code, const struct sg_error *e, const int *fds, size_t n)
{
    struct spawn_reply r = {.code = code};

    snprintf(r.message, sizeof(r.message), "%.255s", e->message);
    return ipc_send(to, &r, sizeof(r), fds, code < 0 ? 0 : n);
}

/* Runs in a child of the holder, because a process that makes a network namespace stays in it. */
static _Noreturn void make_first_netns(void)
{
    AUTO(close_p) int proc = open("/proc", O_PATH | O_DIRECTORY | O_CLOEXEC);
    struct sg_error e = {0};
    int ns = -1, r;

    /* The spawner waits for this, but has more to do meanwhile, and there may be two processors
     * only. */
    setpriority(PRIO_PROCESS, 0, 10);
    r = netns_renew(proc, &e);
    if (r == 0)
        ns = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
    if (r == 0 && ns < 0)
        r = err_errno(&e, "open the first network namespace");
    reply(STAGE_NETNS_FD, r, &e, &ns, 1);
    _exit(0);
}

int holder_main(void)
{
    ssize_t n;
    char c;

    prctl(PR_SET_NAME, "sg-holder");
    signal(SIGCHLD, SIG_IGN); /* the kernel reaps the orphans of W */
    if (fork() == 0)
        make_first_netns();
    close(STAGE_NETNS_FD);
    while ((n = read(STAGE_CONTROL_FD, &c, 1)) > 0 || (n < 0 && errno == EINTR))
        if (n > 0)
            send(STAGE_CONTROL_FD, &c, 1, MSG_NOSIGNAL | MSG_DONTWAIT);
    return 0;
}

static int enter_first_netns(struct sg_error *e)
{
    AUTO(ipc_fds_close) struct ipc_fds ns = {.max = 1};
    struct spawn_reply reply;
    ssize_t got = ipc_recv(STAGE_NETNS_FD, &reply, sizeof(reply), &ns);

    if (got != (ssize_t)sizeof(reply))
        return err_set(e, SG_ERR_INTERNAL, -EPIPE,
                       "the holder ended while the domain was being made");
    if (reply.code < 0)
        return err_set(e, err_kind_of(-reply.code), reply.code, "%.255s", reply.message);
    if (setns(ns.at[0], CLONE_NEWNET) < 0)
        return err_errno(e, "enter the first network namespace");
    close(STAGE_NETNS_FD);
    return 0;
}

int stage_enter_domain(int userns_fd, struct sg_error *e)
{
    if (setns(userns_fd, CLONE_NEWUSER) < 0)
        return err_errno(e, "enter the domain's user namespace");
    close(userns_fd);
    if (confine_ids(0, 0) < 0)
        return err_errno(e, "become root of the domain");
    /* The change of ids made us undumpable. That would give the /proc entries of our children to
     * the host's root, and keep us from writing their id maps. */
    prctl(PR_SET_DUMPABLE, 1);
    return 0;
}

static int write_map(int procfd, pid_t pid, const char *which, uint32_t first_id,
                     struct sg_error *e)
{
    char path[48], text[48];
    int r;

    snprintf(path, sizeof(path), "%d/%s", pid, which);
    snprintf(text, sizeof(text), "0 %u 65536", first_id);
    r = file_write(procfd, path, text);
    return err_internal(e, r, "write %s", which);
}

/* The child must not start before its ids are mapped, so it waits for a byte in a pipe. Each child
 * has a pipe of its own, since the next may be cloned before this one has read its byte. If the
 * spawner is killed first, the pipe closes and the child exits. That also closes the child's copy
 * of the spawner's socket, and the warden waits for that. */
static _Noreturn void child_main(const int start_line[2], int channel_fd, const int *cgroup_fds,
                                 const struct spawn_request *q)
{
    char go;

    close(start_line[1]);
    if (read(start_line[0], &go, 1) != 1)
        _exit(1);
    stage_main(channel_fd, cgroup_fds, q);
}

/* The spawner's own filter, from the first sandbox on: only a request says whether this defence is
 * left out. */
static int confine(unsigned omit, struct sg_error *e)
{
    static bool confined;

    if (confined || DEFENCE_OMITTED(omit, DEFENCE_SECCOMP))
        return 0;
    confined = true;
    return seccomp_confine(SECCOMP_SPAWNER, e);
}

static int spawn(int procfd, const struct spawn_request *q, const int *fds, int ret_fds[2],
                 struct sg_error *e)
{
    AUTO(close_p) int pidfd = -1, wait_end = -1, go_end = -1;
    struct clone_args args = {
        .flags = CLONE_PARENT | CLONE_PIDFD | CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID |
                 CLONE_NEWIPC | CLONE_NEWUTS,
        .pidfd = (uintptr_t)&pidfd,
    };
    char path[32];
    pid_t pid;
    int r, userns, start_line[2];

    if (pipe2(start_line, O_CLOEXEC) < 0)
        return err_errno(e, "make a pipe");
    wait_end = start_line[0];
    go_end = start_line[1];
    pid = sys_clone3(&args);
    if (pid < 0)
        return err_errno(e, "clone a sandbox");
    if (pid == 0)
        child_main(start_line, fds[0], fds + 1, q);

    r = write_map(procfd, pid, "uid_map", q->first_id, e);
    if (r == 0)
        r = write_map(procfd, pid, "gid_map", q->first_id, e);
    if (r < 0) {
        syscall(SYS_pidfd_send_signal, pidfd, SIGKILL, NULL, 0);
        return r;
    }
    snprintf(path, sizeof(path), "%d/ns/user", pid);
    userns = openat(procfd, path, O_RDONLY | O_CLOEXEC);
    if (userns < 0)
        return err_errno(e, "open the sandbox's user namespace");
    if (write(go_end, "g", 1) != 1)
        return err_errno(e, "start the sandbox");
    ret_fds[0] = steal_fd(&pidfd);
    ret_fds[1] = userns;
    return 0;
}

/* Returns false when the warden is gone. */
static bool serve_one(int procfd)
{
    struct spawn_request q;
    struct sg_error e = {0};
    AUTO(ipc_fds_close) struct ipc_fds in = {.max = 1 + STAGE_CGROUPS_MAX};
    int out[2] = {-1, -1}, r;
    ssize_t got = ipc_recv(STAGE_CONTROL_FD, &q, sizeof(q), &in);

    if (got <= 0)
        return got == -EINTR;
    if (got == sizeof(q) && q.magic == STAGE_BEAT && in.n == 0)
        return reply(STAGE_CONTROL_FD, STAGE_BEATS, &e, NULL, 0) == 0;
    if (got != sizeof(q) || q.magic != STAGE_MAGIC || in.n != 1 + (size_t)q.n_cgroups)
        return false;
    r = confine(q.omit, &e);
    if (r == 0)
        r = spawn(procfd, &q, in.at, out, &e);
    reply(STAGE_CONTROL_FD, r, &e, out, 2);
    ipc_fds_close(&in);
    for (size_t i = 0; i < 2; i++)
        close_p(&out[i]);
    if (q.last || DEFENCE_OMITTED(q.omit, DEFENCE_NETNS))
        return true;
    /* Prepares for the next request while this sandbox starts. */
    root_learn();
    return netns_renew(procfd, &e) == 0;
}

static int prepare(int *ret_procfd, struct sg_error *e)
{
    int r = stage_prepare(e);

    if (r == 0)
        r = root_prepare(e);
    if (r < 0)
        return r;
    *ret_procfd = open("/proc", O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (*ret_procfd < 0)
        return err_errno(e, "open the domain's /proc");
    r = stage_enter_domain(STAGE_USERNS_FD, e);
    return r < 0 ? r : enter_first_netns(e);
}

int spawner_main(void)
{
    struct sg_error e = {0};
    int procfd = -1, r;

    prctl(PR_SET_NAME, "sg-spawner");
    r = prepare(&procfd, &e);
    if (r < 0) {
        /* The error becomes the answer to the first request, so that the reason is not lost. */
        reply(STAGE_CONTROL_FD, r, &e, NULL, 0);
        return 1;
    }
    while (serve_one(procfd))
        ;
    return 0;
}
