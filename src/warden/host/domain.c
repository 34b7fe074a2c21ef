#include "warden/host/domain.h"

#include <fcntl.h>
#include <linux/capability.h>
#include <linux/securebits.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include "lib/base/fd.h"
#include "lib/ipc/ipc.h"
#include "lib/base/sys.h"
#include "warden/host/child.h"
#include "warden/host/idmap.h"
#include "warden/host/images.h"
#include "inside/stage/defences.h"
#include "inside/stage/stage.h"
#include "inside/broker/twin.h"

#define HELPER_END_MS 5000

#ifndef MFD_EXEC
#define MFD_EXEC 0x0010U
#endif

/* Sealed: nobody can change it, and no path leads to it. */
int domain_program(struct sg_error *e)
{
    unsigned flags = MFD_CLOEXEC | MFD_ALLOW_SEALING;
    AUTO(close_p) int fd = memfd_create("sandglass-agent", flags | MFD_EXEC);
    int r;

    if (fd < 0 && errno == EINVAL) /* before 6.3 every memfd was executable */
        fd = memfd_create("sandglass-agent", flags);
    if (fd < 0)
        return err_errno(e, "make a memfd for the agent");
    r = fd_write_all(fd, sg_agent_image, (size_t)(sg_agent_image_end - sg_agent_image));
    if (r < 0)
        return err_set(e, err_kind_of(-r), r, "write the agent's memfd: %s", strerror(-r));
    if (fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) < 0)
        return err_errno(e, "seal the agent's memfd");
    return steal_fd(&fd);
}

/* A process whose id is not mapped yet, as the holder's may not be, loses its capabilities at exec.
 * So the holder keeps the two that it needs to make a network namespace in F. */
static void keep_network_caps(void)
{
    static const int caps[] = {CAP_SYS_ADMIN, CAP_NET_ADMIN};
    struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct d[2];

    if (syscall(SYS_capget, &head, d) < 0)
        return;
    for (size_t i = 0; i < ARRAY_SIZE(caps); i++)
        d[0].inheritable |= 1u << caps[i];
    syscall(SYS_capset, &head, d);
    for (size_t i = 0; i < ARRAY_SIZE(caps); i++)
        prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, caps[i], 0, 0);
}

/* Who dies first when memory is short (oom_score_adj): programs in sandboxes (1000,
 * inside/stage/confine.c), kernels (500, inside/broker), agents, which have their spawner's score,
 * the broker, and last those that all others depend on: the holder has the caller's own score, as
 * front and guard of a server have. It is written while this process may still lower it: a process
 * can go down to a value that was written so, and no further. */
#define SPAWNER     "sandglass-spawner"
#define SPAWNER_OOM "100"
#define BROKER      "sandglass-broker"
#define BROKER_OOM  "50"

static void set_oom(const char *role)
{
    const char *score = strcmp(role, SPAWNER) == 0  ? SPAWNER_OOM
                        : strcmp(role, BROKER) == 0 ? BROKER_OOM
                                                    : NULL;

    if (score)
        file_write(AT_FDCWD, "/proc/self/oom_score_adj", score); /* the caller's may be higher */
}

struct helper {
    const char *role;
    int image;
    int flags; /* namespaces to make */
    const int *fds;
    int n;
};

/* Runs in the child. It keeps only the given descriptors, from STAGE_CONTROL_FD on; the standard
 * ones become /dev/null, so that no terminal of the caller stays open inside. The child shares the
 * parent's memory until exec: no allocation. */
static int exec_helper(void *arg)
{
    const struct helper *h = arg;
    char *argv[] = {(char *)(uintptr_t)h->role, NULL}, *envp[] = {NULL};
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    sigset_t none;

    if (h->flags & CLONE_NEWUSER)
        keep_network_caps();
    set_oom(h->role);
    /* First moves all descriptors to high numbers: a source may have a target's number. */
    int high[4] = {fcntl(h->image, F_DUPFD_CLOEXEC, 64)};
    for (int i = 0; i < h->n; i++)
        high[i + 1] = fcntl(h->fds[i], F_DUPFD_CLOEXEC, 64);
    for (int i = 0; i < 3; i++)
        dup2(null, i);
    for (int i = 0; i < h->n; i++)
        dup2(high[i + 1], STAGE_CONTROL_FD + i);
    sys_close_range((unsigned)(STAGE_CONTROL_FD + h->n), ~0U, CLOSE_RANGE_CLOEXEC);
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    syscall(SYS_execveat, high[0], "", argv, envp, AT_EMPTY_PATH);
    _exit(127);
}

/* Starts a helper and returns its pid. fds: the helper's descriptors, which are closed here; the
 * first is its end of a socket pair. */
static int start_helper(int image, const char *role, int flags, int *fds, int n, int *ret_pidfd,
                        struct sg_error *e)
{
    struct helper h = {.role = role, .image = image, .flags = flags, .fds = fds, .n = n};
    int pid = child_clone(exec_helper, &h, CLONE_PIDFD | flags | SIGCHLD, ret_pidfd);

    for (int i = 0; i < n; i++)
        close_p(&fds[i]);
    return pid < 0 ? err_code(e, pid, "start %s", role) : pid;
}

static int open_ns(pid_t pid, const char *which, struct sg_error *e)
{
    char path[48];
    int fd;

    snprintf(path, sizeof(path), "/proc/%d/ns/%s", pid, which);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    return fd < 0 ? err_errno(e, "open '%s'", path) : fd;
}

int domain_open_userns(const struct domain *d, struct sg_error *e)
{
    return open_ns(d->holder_pid, "user", e);
}

/* The kernel counts some things per user (inotify instances, message queues, pending signals...),
 * and counts them also for the maker of each user namespace above. If that were the host's root,
 * one sandbox could use up root's share. So F is made under its own first id; the capabilities
 * stay. */
struct identity {
    uid_t real;
    int securebits, dumpable;
};

static int identity_take(uint32_t id, struct identity *ret)
{
    ret->real = getuid();
    ret->dumpable = prctl(PR_GET_DUMPABLE);
    ret->securebits = prctl(PR_GET_SECUREBITS);
    if (ret->securebits < 0 ||
        prctl(PR_SET_SECUREBITS, ret->securebits | SECBIT_NO_SETUID_FIXUP) < 0 ||
        syscall(SYS_setresuid, id, id, -1) < 0) /* both ids, or exec treats it as set-uid */
        return -errno;
    return 0;
}

static void identity_give_back(const struct identity *old)
{
    syscall(SYS_setresuid, old->real, 0, -1);
    prctl(PR_SET_SECUREBITS, old->securebits);
    prctl(PR_SET_DUMPABLE, old->dumpable == 1); /* the change of ids had cleared it */
}

/* Starts the holder, which makes and keeps F and W. Returns the holder's pid. */
static int start_holder(struct domain *d, int image, int netns_sock, struct sg_error *e)
{
    struct identity self;
    int socks[2], pid, r;
    char map[48];

    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, socks) < 0)
        return err_errno(e, "make a socket pair");
    d->holder_sock = socks[0];
    r = identity_take(slot_first_id(d->slots.first), &self);
    pid = r < 0 ? err_set(e, SG_ERR_INTERNAL, r, "take the domain's id: %s", strerror(-r))
                : start_helper(image, "sandglass-holder", CLONE_NEWUSER | CLONE_NEWPID,
                               (int[]){socks[1], netns_sock}, 2, &d->holder_pidfd, e);
    identity_give_back(&self);
    if (pid == -ENOSPC || pid == -EPERM || pid == -EINVAL)
        return err_set(e, SG_ERR_UNSUPPORTED, pid,
                       "this kernel gives no user namespaces (%s): see 'sandglass doctor'",
                       strerror(-pid));
    if (pid < 0)
        return pid;
    snprintf(map, sizeof(map), "0 %u %u", slot_first_id(d->slots.first), d->slots.count * SLOT_IDS);
    r = idmap_write(pid, map, map, e);
    return r < 0 ? r : pid;
}

/* Starts a helper in W. `fds`: as for start_helper, with room for one more, the domain's user
 * namespace. For a short time all children of the calling thread would start in W. */
static int start_in_domain(struct domain *d, int image, const char *role, int *fds, int n,
                           int *ret_pidfd, struct sg_error *e)
{
    AUTO(close_p) int own = open("/proc/self/ns/pid", O_RDONLY | O_CLOEXEC);
    AUTO(close_p) int pidns = open_ns(d->holder_pid, "pid", e);
    int r = pidns < 0 ? pidns : domain_open_userns(d, e);

    fds[n] = r;
    if (r >= 0 && (own < 0 || setns(pidns, CLONE_NEWPID) < 0))
        r = err_errno(e, "enter the domain's pid namespace");
    if (r < 0) {
        for (int i = 0; i <= n; i++)
            close_p(&fds[i]);
        return r;
    }
    r = start_helper(image, role, 0, fds, n + 1, ret_pidfd, e);
    sched_yield(); /* let the helper run first: there may be only two processors */
    if (setns(own, CLONE_NEWPID) < 0 && r >= 0)
        return err_errno(e, "leave the domain's pid namespace");
    return r;
}

static int start_spawner(struct domain *d, int image, int netns_sock, struct sg_error *e)
{
    int socks[2];

    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, socks) < 0) {
        int r = err_errno(e, "make a socket pair");
        close_p(&netns_sock);
        return r;
    }
    d->spawner_sock = socks[0];
    int fds[3] = {socks[1], netns_sock};
    return start_in_domain(d, image, SPAWNER, fds, 2, &d->spawner_pidfd, e);
}

int domain_start_broker(struct domain *d, struct sg_error *e)
{
    AUTO(close_p) int image = domain_program(e);
    int socks[2], r;

    if (image < 0)
        return image;
    child_end(&d->broker_pidfd, HELPER_END_MS, NULL);
    close_p(&d->broker_sock);
    close_p(&d->broker_pidfd);
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, socks) < 0)
        return err_errno(e, "make a socket pair");
    d->broker_sock = socks[0];
    int fds[2] = {socks[1]};
    r = start_in_domain(d, image, BROKER, fds, 1, &d->broker_pidfd, e);
    return r < 0 ? r : 0;
}

static int start_helpers(struct domain *d, struct sg_error *e)
{
    AUTO(close_p) int image = domain_program(e);
    int netns[2], r;

    if (image < 0)
        return image;
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, netns) < 0)
        return err_errno(e, "make a socket pair");
    r = start_holder(d, image, netns[0], e);
    if (r < 0) {
        close(netns[1]);
        return r;
    }
    d->holder_pid = r;
    return start_spawner(d, image, netns[1], e);
}

int domain_open(uint32_t max_sandboxes, struct domain *ret, struct sg_error *e)
{
    struct domain d = {.slots.fd = -1,
                       .holder_pidfd = -1,
                       .holder_sock = -1,
                       .spawner_pidfd = -1,
                       .spawner_sock = -1,
                       .broker_pidfd = -1,
                       .broker_sock = -1};
    int r = slots_take(&d.slots, max_sandboxes + 1, e);

    if (r == 0)
        r = start_helpers(&d, e);
    if (r < 0) {
        domain_close(&d);
        return r;
    }
    *ret = d;
    return 0;
}

void domain_kill(struct domain *d)
{
    child_kill(d->broker_pidfd);
    child_kill(d->spawner_pidfd);
    child_kill(d->holder_pidfd);
}

void domain_close(struct domain *d)
{
    domain_kill(d);
    child_end(&d->broker_pidfd, HELPER_END_MS, NULL);
    child_end(&d->spawner_pidfd, HELPER_END_MS, NULL);
    child_end(&d->holder_pidfd, HELPER_END_MS, NULL);
    close_p(&d->broker_sock);
    close_p(&d->spawner_sock);
    close_p(&d->holder_sock);
    slots_release(&d->slots);
}

/* ---- sandboxes ------------------------------------------------------------------------------- */

int domain_spawn_begin(struct domain *d, const struct domain_order *order, struct sg_error *e)
{
    bool shared_ids = DEFENCE_OMITTED(order->omit, DEFENCE_UIDS);
    struct spawn_request q = {.magic = STAGE_MAGIC,
                              .first_id = (shared_ids ? 1 : order->index) * SLOT_IDS,
                              .omit = order->omit,
                              .last = order->last,
                              .n_cgroups = (uint32_t)order->n_cgroups};
    int fds[1 + STAGE_CGROUPS_MAX] = {order->channel_fd}, r;

    memcpy(fds + 1, order->cgroup_fds, order->n_cgroups * sizeof(fds[0]));
    r = ipc_send(d->spawner_sock, &q, sizeof(q), fds, 1 + order->n_cgroups);
    /* A spawner that has failed left its reason in the socket: domain_spawn_finish reads it. */
    if (r < 0 && r != -EPIPE)
        return err_set(e, SG_ERR_INTERNAL, r, "ask the spawner: %s", strerror(-r));
    return 0;
}

bool domain_spawn_ready(struct domain *d)
{
    struct pollfd p = {.fd = d->spawner_sock, .events = POLLIN};
    struct spawn_reply reply;

    while (recv(p.fd, &reply, sizeof(reply), MSG_DONTWAIT | MSG_PEEK) == sizeof(reply) &&
           reply.code == STAGE_BEATS)
        recv(p.fd, &reply, sizeof(reply), MSG_DONTWAIT);
    return poll(&p, 1, 0) == 1;
}

int domain_spawn_finish(struct domain *d, struct domain_child *ret, struct sg_error *e)
{
    struct spawn_reply reply;
    AUTO(ipc_fds_close) struct ipc_fds fds = {.max = 2};
    ssize_t got = ipc_recv(d->spawner_sock, &reply, sizeof(reply), &fds);

    if (got != (ssize_t)sizeof(reply))
        return err_set(e, SG_ERR_INTERNAL, -EPIPE, "the spawner has ended unexpectedly");
    if (reply.code < 0)
        return err_set(e, err_kind_of(-reply.code), reply.code, "%.255s", reply.message);
    if (fds.n != 2)
        return err_set(e, SG_ERR_INTERNAL, -EPROTO, "the spawner sent %zu descriptors", fds.n);
    *ret = (struct domain_child){.pidfd = steal_fd(&fds.at[0]), .userns = steal_fd(&fds.at[1])};
    return 0;
}
