#include "warden/processes/world_builder.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include "lib/base/fd.h"
#include "lib/base/sys.h"
#include "warden/host/child.h"
#include "warden/layers/mounts.h"
#include "warden/server.h"
#include "wire/world_builder.h"

#ifndef MFD_EXEC
#define MFD_EXEC 0x0010U
#endif

#define BUILDERS_MAX 16
#define ABOVE        64 /* descriptors on the way to their numbers */
#define PATH_LEN     512

struct builder {
    struct server *server;
    struct loop_source process;
    int pidfd;
};

struct start {
    char programs[3][PATH_LEN]; /* front, puller, image worker */
    int userns, fds[2];         /* socket and worlds */
};

/* Whoever is nobody may have no right to execute the file, and no way to it; a copy in memory
 * anybody can execute who has the descriptor. */
static int copy_program(const char *path)
{
    int from = open(path, O_RDONLY | O_CLOEXEC);
    int to = memfd_create("program", MFD_CLOEXEC | MFD_EXEC);
    ssize_t n = -1;

    if (to < 0 && errno == EINVAL) /* before 6.3 every memfd was executable */
        to = memfd_create("program", MFD_CLOEXEC);
    while (from >= 0 && to >= 0 && (n = sendfile(to, from, NULL, 1 << 20)) > 0)
        ;
    return n < 0 ? -1 : fcntl(to, F_DUPFD_CLOEXEC, ABOVE);
}

/* Runs in the child, which shares the warden's memory until it execs: no allocation. */
static int become(void *arg)
{
    const struct start *s = arg;
    const char *argv[] = {"sandglass-front", BUILDER_ARGUMENT, NULL};
    char *envp[] = {NULL};
    int null = open("/dev/null", O_RDWR | O_CLOEXEC), program = copy_program(s->programs[0]);
    int moved[] = {null,
                   null,
                   null,
                   fcntl(s->fds[0], F_DUPFD_CLOEXEC, ABOVE),
                   fcntl(s->fds[1], F_DUPFD_CLOEXEC, ABOVE),
                   copy_program(s->programs[1]),
                   copy_program(s->programs[2])};
    sigset_t none;

    setsid();
    signal(SIGPIPE, SIG_DFL);
    for (int i = 0; i < BUILDER_FDS; i++)
        if (dup2(moved[i], i) < 0)
            _exit(126);
    /* It and its workers take memory by what strangers wrote: they are the first to go. */
    file_write(AT_FDCWD, "/proc/self/oom_score_adj", "1000");
    if (syscall(SYS_setgroups, 0, NULL) < 0 || setns(s->userns, CLONE_NEWUSER) < 0 ||
        syscall(SYS_setresgid, 0, 0, 0) < 0 || syscall(SYS_setresuid, 0, 0, 0) < 0)
        _exit(126);
    sys_close_range(BUILDER_FDS, ~0U, CLOSE_RANGE_CLOEXEC);
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    syscall(SYS_execveat, program, "", argv, envp, AT_EMPTY_PATH);
    _exit(126);
}

static void on_ended(struct loop_source *src, uint32_t events UNUSED)
{
    struct builder *m = CONTAINER_OF(src, struct builder, process);

    loop_unwatch(&m->server->loop, &m->process);
    child_reap(&m->pidfd, NULL);
    m->server->files.n--;
    m->server->files.builders--;
    free(m);
}

static void name_programs(const struct server *s, struct start *ret)
{
    static const char *const names[] = {"sandglass-front", "sandglass-pull", "sandglass-image"};
    const char *slash = strrchr(s->front.program, '/');
    int len = slash ? (int)(slash + 1 - s->front.program) : 0;

    for (size_t i = 0; i < ARRAY_SIZE(names); i++)
        snprintf(ret->programs[i], PATH_LEN, "%.*s%s", len, s->front.program, names[i]);
}

int builder_start(struct server *s, int *ret_fd, struct sg_error *e)
{
    struct start start = {.userns = s->files.ids};
    AUTO(close_p) int worlds = -1, ours = -1, theirs = -1;
    int socks[2], pidfd = -1, r;

    if (s->files.builders == BUILDERS_MAX)
        return err_set(e, SG_ERR_LIMIT, -EAGAIN,
                       "%u images are fetched already: try again when one is there", BUILDERS_MAX);
    r = mounts_map_writable(s->state.worlds, "the worlds", s->files.ids, &worlds, e);
    if (r < 0)
        return r;
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, socks) < 0)
        return err_errno(e, "make a socket pair for a world builder");
    ours = socks[0];
    theirs = socks[1];
    start.fds[0] = theirs;
    start.fds[1] = worlds;
    name_programs(s, &start);
    r = child_clone(become, &start, CLONE_PIDFD | SIGCHLD, &pidfd);
    if (r < 0)
        return err_code(e, r, "start a world builder");
    struct builder *m =
        NEW(struct builder, .server = s, .pidfd = pidfd, .process = {.fd = -1, .fn = on_ended});
    s->files.n++;
    s->files.builders++;
    loop_watch(&s->loop, &m->process, pidfd, EPOLLIN);
    *ret_fd = steal_fd(&ours);
    return 0;
}
