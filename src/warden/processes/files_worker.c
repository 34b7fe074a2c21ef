#include "warden/processes/files_worker.h"

#include <fcntl.h>
#include <grp.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/xattr.h>

#include "lib/base/clock.h"
#include "lib/base/fd.h"
#include "lib/base/sys.h"
#include "lib/ipc/ipc.h"
#include "lib/log/log.h"
#include "warden/host/child.h"
#include "warden/host/domain.h"
#include "warden/host/idmap.h"
#include "warden/layers/layer_stack.h"
#include "warden/layers/scratch_store.h"
#include "warden/layers/mounts.h"
#include "warden/providers/provider.h"
#include "warden/server.h"

#define CLOSE_NS   5000000000ull
#define PROBE_MARK "user.overlay.probe"

/* Seconds until a worker is killed. A carry holds a sandbox up; the others may have a whole disk to
 * copy. */
static const unsigned deadlines_s[FILES_OP_MAX_] = {[FILES_SAVE] = 1800,
                                                    [FILES_MERGE] = 600,
                                                    [FILES_CARRY] = 3,
                                                    [FILES_REMOVE] = 1800,
                                                    [FILES_DIFF] = 60};

struct files_worker {
    struct server *server;
    struct loop_source process;
    int pidfd, sock;
    files_done done; /* NULL: cancelled */
    void *arg;
};

/* ---- the request ----------------------------------------------------------------------------- */

void files_order_init(struct files_order *o, enum files_op op)
{
    *o = (struct files_order){
        .request = {.magic = FILES_MAGIC, .op = (uint32_t)op, .deadline_s = deadlines_s[op]},
        .list = -1};
}

int files_order_tree(struct files_order *o, int tree, uint32_t first_id)
{
    uint32_t n = o->request.n_mounts;

    for (uint32_t i = 0; i < n; i++)
        if (o->trees[i] == tree)
            return (int)i;
    if (n == FILES_MOUNTS_MAX)
        return -E2BIG;
    o->trees[n] = tree;
    o->first_ids[n] = first_id;
    return (int)o->request.n_mounts++;
}

int files_order_add(struct files_order *o, int tree, uint32_t first_id, const char *dir, bool upper)
{
    struct files_request *q = &o->request;
    uint32_t n = q->n_layers + q->n_uppers;
    int mount = n == FILES_LAYERS_MAX ? -E2BIG : files_order_tree(o, tree, first_id);

    if (mount < 0)
        return mount;
    q->v[n].mount = (uint32_t)mount;
    snprintf(q->v[n].dir, sizeof(q->v[n].dir), "%s", dir);
    if (upper)
        q->n_uppers++;
    else
        q->n_layers++;
    return 0;
}

int files_order_add_view(struct files_order *o, const struct layer_stack_view *view)
{
    int r = 0;

    if (view->place)
        o->request.most = scratch_place_copied(view->place);
    if (view->n > 0)
        o->request.first_id = view->v[view->n - 1].first_id;
    for (size_t i = 0; r == 0 && i < view->n; i++)
        r = files_order_add(o, view->v[i].mount, view->v[i].first_id, view->v[i].dir, false);
    return r;
}

/* ---- the process ----------------------------------------------------------------------------- */

struct start {
    const char *role;
    int userns, image, sock;
};

/* Runs in the child, which shares the warden's memory until it execs: no allocation. */
static int become(void *arg)
{
    const struct start *s = arg;
    char *argv[] = {(char *)(uintptr_t)s->role, NULL}, *envp[] = {NULL};
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    int image = fcntl(s->image, F_DUPFD_CLOEXEC, 64), sock = fcntl(s->sock, F_DUPFD_CLOEXEC, 64);
    sigset_t none;

    setsid();
    signal(SIGPIPE, SIG_DFL);
    for (int i = 0; i < FILES_FD; i++)
        dup2(null, i);
    if (image < 0 || dup2(sock, FILES_FD) < 0)
        _exit(126);
    if (s->userns >= 0 &&
        (syscall(SYS_setgroups, 0, NULL) < 0 || setns(s->userns, CLONE_NEWUSER) < 0 ||
         syscall(SYS_setresgid, 0, 0, 0) < 0 || syscall(SYS_setresuid, 0, 0, 0) < 0))
        _exit(126);
    sys_close_range(FILES_FD + 1, ~0U, CLOSE_RANGE_CLOEXEC);
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    syscall(SYS_execveat, image, "", argv, envp, AT_EMPTY_PATH);
    _exit(126);
}

int files_process_start(struct server *s, const char *role, int userns, int ours, int theirs,
                        int *ret_pidfd, struct sg_error *e)
{
    struct start start = {.role = role, .userns = userns, .image = s->files.image, .sock = theirs};
    int r;

    fd_set_nonblock(theirs, false);
    r = child_clone(become, &start, CLONE_PIDFD | SIGCHLD, ret_pidfd);
    close(theirs);
    if (r < 0) {
        close(ours);
        return err_code(e, r, "start a process for files");
    }
    return 0;
}

static void on_ended(struct loop_source *src, uint32_t events UNUSED)
{
    struct files_worker *w = CONTAINER_OF(src, struct files_worker, process);
    struct server *s = w->server;
    struct files_answer a;

    loop_unwatch(&s->loop, &w->process);
    if (ipc_take(w->sock, FILES_MAGIC, &a, sizeof(a), sizeof(a), NULL) != (ssize_t)sizeof(a))
        a = (struct files_answer){.code = -ECHILD,
                                  .kind = SG_ERR_LIMIT,
                                  .message = "the process that works on the sandbox's files was "
                                             "killed: try again"};
    a.message[sizeof(a.message) - 1] = '\0';
    child_reap(&w->pidfd, NULL);
    close_p(&w->sock);
    s->files.n--;
    if (w->done)
        w->done(w->arg, &a);
    free(w);
}

typedef __typeof__(mounts_map_dir) mount_mapper;

/* Mounts a tree for a worker, in which ids 0 to 65535 are those of the tree from first_id on. */
static int mount_tree(const struct server *s, mount_mapper *map, int tree, uint32_t first_id,
                      int *ret, struct sg_error *e)
{
    AUTO(close_p) int userns = -1;
    int r = 0;

    if (first_id > 0)
        r = idmap_open_range(first_id, slot_first_id(s->files.slot.first), SLOT_IDS, &userns, e);
    return r < 0 ? r
                 : map(tree, "a sandbox's files", first_id > 0 ? userns : s->files.userns, ret, e);
}

/* Gives the worker its request, with the trees mounted for it. */
static int send_request(const struct server *s, int sock, const struct files_order *o,
                        struct sg_error *e)
{
    struct files_request q = o->request;
    mount_mapper *map = q.op == FILES_DIFF ? mounts_map_dir : mounts_map_writable;
    AUTO(ipc_fds_close) struct ipc_fds fds = {.max = IPC_FDS_MAX};
    int r = 0;

    if (s->files.userns < 0)
        q.flags |= FILES_TRUSTED;
    else
        q.first_id = 0;
    for (size_t i = 0; i < ARRAY_SIZE(fds.at); i++)
        fds.at[i] = -1;
    for (size_t i = 0; r == 0 && i < q.n_mounts; i++) {
        if (s->files.userns >= 0)
            r = mount_tree(s, map, o->trees[i], o->first_ids[i], &fds.at[fds.n], e);
        else if ((fds.at[fds.n] = fcntl(o->trees[i], F_DUPFD_CLOEXEC, 0)) < 0)
            r = err_errno(e, "open a sandbox's files");
        fds.n += r == 0;
    }
    if (r == 0 && o->list >= 0) {
        fds.at[fds.n] = fcntl(o->list, F_DUPFD_CLOEXEC, 0);
        r = fds.at[fds.n] < 0 ? err_errno(e, "open the list of files") : 0;
        fds.n += r == 0;
    }
    if (r == 0) {
        r = ipc_send(sock, &q, sizeof(q), fds.at, fds.n);
        if (r < 0)
            err_set(e, SG_ERR_INTERNAL, r, "ask the files worker: %s", strerror(-r));
    }
    return r;
}

struct files_worker *files_worker_start(struct server *s, const struct files_order *o,
                                        files_done done, void *arg, struct sg_error *e)
{
    struct files_worker *w;
    int socks[2], r, pidfd = -1;

    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, socks) < 0) {
        err_errno(e, "make a socket pair for the files worker");
        return NULL;
    }
    r = send_request(s, socks[0], o, e);
    if (r < 0) {
        close(socks[0]);
        close(socks[1]);
        return NULL;
    }
    if (files_process_start(s, FILES_ROLE, s->files.userns, socks[0], socks[1], &pidfd, e) < 0)
        return NULL;
    w = NEW(struct files_worker, .server = s, .process = {.fd = -1, .fn = on_ended}, .pidfd = pidfd,
            .sock = socks[0], .done = done, .arg = arg);
    s->files.n++;
    loop_watch(&s->loop, &w->process, pidfd, EPOLLIN);
    return w;
}

void files_worker_kill(struct files_worker *w)
{
    child_kill(w->pidfd);
}

void files_worker_cancel(struct files_worker *w)
{
    w->done = NULL;
    files_worker_kill(w);
}

/* ---- what this host can do ------------------------------------------------------------------- */

bool files_workers_serve(const struct server *s, int tree)
{
    AUTO(close_p) int mapped = -1, fd = -1;

    if (mounts_map_writable(tree, "", s->files.ids, &mapped, NULL) < 0)
        return false;
    fd = openat(tree, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0 || fsetxattr(fd, PROBE_MARK, "y", 1, 0) < 0)
        return false;
    fremovexattr(fd, PROBE_MARK);
    return true;
}

static bool serve_memory(const struct server *s)
{
    struct scratch *scratch = NULL;
    bool can =
        scratch_make(1u << 20, 16, &scratch, NULL) == 0 && files_workers_serve(s, scratch->mount);

    scratch_release(scratch);
    return can;
}

void files_workers_choose(struct server *s)
{
    bool disks = s->scratch_store ? files_workers_serve(s, s->scratch_store->top) : serve_memory(s);

    if (disks && (!s->state.maps_ids || files_workers_serve(s, s->state.snapshots)))
        s->files.userns = s->files.ids;
    else
        log_line(LEVEL_WARN,
                 "files of sandboxes are saved and removed by processes of root: anything less "
                 "needs Linux 6.6 for disks in memory, and a state directory with user attributes");
}

int files_workers_open(struct server *s, struct sg_error *e)
{
    int r = slots_take(&s->files.slot, 1, e);

    if (r == 0)
        r = idmap_open_range(0, slot_first_id(s->files.slot.first), SLOT_IDS, &s->files.ids, e);
    if (r == 0)
        r = s->files.image = domain_program(e);
    return r < 0 ? r : 0;
}

static void on_late(struct loop_timer *timer UNUSED)
{
    /* it only wakes the loop */
}

void files_workers_close(struct server *s)
{
    uint64_t deadline = clock_ns() + CLOSE_NS;
    struct loop_timer late = {.fn = on_late};

    loop_timer_set(&s->loop, &late, deadline);
    while (s->files.n > 0 && clock_ns() < deadline && loop_turn(&s->loop) == 0)
        ;
    loop_timer_cancel(&s->loop, &late);
    close_p(&s->files.ids);
    close_p(&s->files.image);
    slots_release(&s->files.slot);
    s->files = (struct files_workers)FILES_WORKERS_NONE;
}
