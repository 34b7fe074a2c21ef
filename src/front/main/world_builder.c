/* Two processes. One watches the socket to the front; the other does the work, and is killed with
 * all that it has started when the front hangs up. Neither reads anything that a stranger wrote:
 * structs of a fixed size from puller and image workers are all that reaches them. */
#include "front/main/world_builder.h"

#include <fcntl.h>
#include <linux/capability.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "front/main/world_image.h"
#include "front/main/worker.h"
#include "lib/base/fd.h"
#include "lib/ipc/ipc.h"
#include "wire/world_builder.h"

_Static_assert(BUILDER_CONFIG_MAX == PULL_CONFIG && BUILDER_DIGEST == PULL_DIGEST,
               "what is passed on");

/* ---- what the front is told ------------------------------------------------------------------ */

static void say(struct builder_told *t)
{
    t->magic = BUILDER_MAGIC;
    ipc_send(BUILDER_SOCK, t, sizeof(*t), NULL, 0); /* if the front is gone, so are we soon */
}

static void say_error(const struct sg_error *e, int code)
{
    struct builder_told t = {.what = BUILDER_FAILED, .code = code};

    snprintf(t.message, sizeof(t.message), "%.*s", (int)sizeof(t.message) - 1, e->message);
    say(&t);
}

static int on_progress(const struct pulled *p, void *arg UNUSED, struct sg_error *e UNUSED)
{
    static const enum builder_what what[] = {[PULLED_PROGRESS] = BUILDER_FETCHING,
                                             [PULLED_WAITING] = BUILDER_WAITING,
                                             [PULLED_UNPACKING] = BUILDER_UNPACKING};
    struct builder_told t = {.what = what[p->what],
                             .layer = p->layer,
                             .of = p->of,
                             .bytes = p->layer_bytes,
                             .total = p->layer_total};

    if (p->what == PULLED_WAITING)
        memcpy(t.message, p->message, sizeof(t.message));
    say(&t);
    return 0;
}

static void say_made(const struct pulled *p, uint64_t bytes)
{
    struct builder_told t = {.what = BUILDER_DONE, .of = p->n, .bytes = bytes};

    memcpy(t.digest, p->digest, sizeof(t.digest));
    memcpy(t.config, p->config, sizeof(t.config));
    t.config_len = p->config_len;
    say(&t);
}

/* ---- the work -------------------------------------------------------------------------------- */

static int work(const struct builder_request *q, int worlds, const int fds[BUILDER_FILES],
                struct sg_error *e)
{
    AUTO(world_abandon) struct world_making m = WORLD_MAKING_NONE;
    struct pull_order order = {
        .request = fds[0], .archive = fds[1], .known = q->known, .tell = on_progress};
    struct pulled *p = xcalloc(1, sizeof(*p));
    struct builder_told same = {.what = BUILDER_SAME};
    struct world_made made;
    int r = world_begin(&m, worlds, q->id, e);

    m.bytes_max = q->bytes_max;
    if (r == 0)
        r = world_add_image(&m, &order, p, e);
    if (r == 0 && m.begun == 0)
        say(&same);
    else if (r == 0)
        r = world_finish(&m, &made, e);
    if (r == 0 && m.dir < 0)
        say_made(p, made.bytes);
    free(p);
    return r;
}

/* What it needs of root's rights is to become nobody, to give nobody a folder, and that nobody dies
 * with it. */
static void drop_rights(void)
{
    struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct caps[2] = {0};

    caps[0].permitted = caps[0].effective = 1u << CAP_SETUID | 1u << CAP_SETGID | 1u << CAP_CHOWN |
                                            1u << CAP_KILL | 1u << CAP_DAC_OVERRIDE;
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 || prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0 ||
        setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0}) < 0 || syscall(SYS_capset, &head, caps) < 0)
        _exit(2);
}

static _Noreturn void work_and_exit(const struct builder_request *q, int worlds,
                                    const int fds[BUILDER_FILES])
{
    struct sg_error e = {0};
    int r;

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    r = work(q, worlds, fds, &e);
    if (r < 0)
        say_error(&e, r);
    _exit(r < 0);
}

/* Waits until the worker and all that it has started have ended, and ends them if the front hangs
 * up. */
static void watch(pid_t worker, int pidfd)
{
    struct pollfd p[] = {{.fd = pidfd, .events = POLLIN},
                         {.fd = BUILDER_SOCK, .events = POLLRDHUP}};

    while (poll(p, ARRAY_SIZE(p), -1) < 0 && errno == EINTR)
        ;
    if (!p[0].revents)
        kill(worker, SIGKILL);
    while (waitpid(-1, NULL, 0) > 0 || errno == EINTR)
        ;
}

static int take_request(struct builder_request *q, int ret_fds[BUILDER_FILES])
{
    AUTO(ipc_fds_close) struct ipc_fds fds = {.max = BUILDER_FILES};

    if (ipc_take(BUILDER_SOCK, BUILDER_MAGIC, q, sizeof(*q), sizeof(*q), &fds) !=
        (ssize_t)sizeof(*q))
        return -1;
    q->id[ID_LEN] = q->known[BUILDER_DIGEST - 1] = '\0';
    for (size_t i = 0; i < BUILDER_FILES; i++)
        ret_fds[i] = i < fds.n ? steal_fd(&fds.at[i]) : -1;
    return q->id[0] == '\0' || (id_valid(q->id) && ret_fds[0] >= 0) ? 0 : -1;
}

void builder_main(void)
{
    struct builder_request q;
    int fds[BUILDER_FILES], pidfd, worlds;
    pid_t worker;

    drop_rights();
    prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
    signal(SIGPIPE, SIG_IGN);
    umask(077);
    for (int fd = BUILDER_SOCK; fd < BUILDER_FDS; fd++)
        fcntl(fd, F_SETFD, FD_CLOEXEC);
    worker_use_program(PULL_PROGRAM, BUILDER_PULL);
    worker_use_program(IMAGE_PROGRAM, BUILDER_IMAGE);
    worlds = openat(BUILDER_WORLDS, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (worlds < 0 || take_request(&q, fds) < 0)
        _exit(2);
    worlds_sweep(worlds);
    if (q.id[0] == '\0')
        _exit(0);
    worker = fork();
    if (worker == 0)
        work_and_exit(&q, worlds, fds);
    pidfd = worker < 0 ? -1 : (int)syscall(SYS_pidfd_open, worker, 0);
    if (pidfd < 0)
        _exit(2);
    watch(worker, pidfd);
    worlds_sweep(worlds);
    _exit(0);
}
