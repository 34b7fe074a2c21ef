#include "inside/broker/zygote.h"

#include <fcntl.h>
#include <linux/capability.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/socket.h>

#include "inside/agent/agent.h"
#include "lib/base/clock.h"
#include "lib/base/fd.h"
#include "lib/ipc/ipc.h"
#include "lib/base/sys.h"
#include "inside/broker/procfs.h"
#include "inside/broker/tables.h"
#include "inside/broker/tracee.h"

#ifndef PR_GET_TID_ADDRESS
#define PR_GET_TID_ADDRESS 40
#endif

#define LOAD_NS    60000000000ull
#define SETTLE_NS  5000000000ull
#define MAPS_MAX   (1u << 20)
#define UMASK      022
#define CONTROL_FD 3
#define COPIES_FD  4 /* the bottom of the chute, until the zygote is held: then it becomes 3 */

static const char python[] = "/usr/bin/python3",
                  program[] = "/usr/local/lib/sandglass/kernels/python";

/* ---- starting the zygote --------------------------------------------------------------------- */

static int enter_namespaces(const int *fds)
{
    static const int flags[TWIN_ZYGOTE_FDS] = {[TWIN_Z_MNT] = CLONE_NEWNS,
                                               [TWIN_Z_NET] = CLONE_NEWNET,
                                               [TWIN_Z_IPC] = CLONE_NEWIPC,
                                               [TWIN_Z_UTS] = CLONE_NEWUTS};

    for (int i = TWIN_ZYGOTE_FDS - 1; i >= 0; i--) /* the mount namespace last */
        if (setns(fds[i], flags[i]) < 0)
            return -errno;
    return 0;
}

/* A copy needs CAP_SYS_ADMIN in F to enter a sandbox, and nothing else. It is kept over exec as an
 * ambient capability; all others are dropped. */
static int keep_one_cap(uint32_t uid)
{
    struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct d[2] = {{.effective = 1u << CAP_SYS_ADMIN,
                                           .permitted = 1u << CAP_SYS_ADMIN,
                                           .inheritable = 1u << CAP_SYS_ADMIN}};

    for (unsigned long c = 0; c < 64; c++)
        if (c != CAP_SYS_ADMIN && prctl(PR_CAPBSET_DROP, c, 0, 0, 0) < 0 && errno != EINVAL)
            return -errno;
    if (prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0) < 0 || syscall(SYS_setgroups, 0, NULL) < 0 ||
        syscall(SYS_setresgid, uid, uid, uid) < 0 || syscall(SYS_setresuid, uid, uid, uid) < 0 ||
        syscall(SYS_capset, &head, d) < 0 ||
        prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, CAP_SYS_ADMIN, 0, 0) < 0 ||
        prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
        return -errno;
    return 0;
}

static int place_fds(int control, int copies)
{
    int null = open("/dev/null", O_RDWR | O_CLOEXEC), high[2];

    high[0] = fcntl(control, F_DUPFD_CLOEXEC, 64);
    high[1] = fcntl(copies, F_DUPFD_CLOEXEC, 64);
    if (null < 0 || high[0] < 0 || high[1] < 0)
        return -errno;
    for (int i = 0; i < 3; i++)
        if (dup2(null, i) < 0)
            return -errno;
    if (dup2(high[0], CONTROL_FD) < 0 || dup2(high[1], COPIES_FD) < 0 ||
        sys_close_range(COPIES_FD + 1, ~0U, CLOSE_RANGE_CLOEXEC) < 0)
        return -errno;
    return 0;
}

static int become_zygote(const struct chute *c, const struct twin_request *q, const int *fds,
                         int control)
{
    const struct agent_user *as = agent_user_find("user");
    uint32_t uid = q->first_id + as->uid;
    struct sg_error e;
    int r = source_be_victim(getpid(), OOM_KERNEL, &e);

    /* The zygote joins the memory group only. Copies start in its other groups and join those of
     * their own; an H stays in them. */
    if (r == 0 && write(fds[TWIN_ZYGOTE_FDS], "0", 1) != 1)
        r = -errno;
    if (r == 0)
        r = enter_namespaces(fds);
    if (r == 0)
        r = place_fds(control, c->bottom);
    if (r == 0)
        r = keep_one_cap(uid);
    /* Set after the change of ids, which clears it. Until the zygote is held, nothing else ends it
     * together with the broker. */
    if (r == 0 && (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || chdir(as->home) < 0))
        r = -errno;
    return r < 0 ? r : seccomp_confine(SECCOMP_ZYGOTE, &e);
}

/* Runs in the child. An error is sent in place of the interpreter's Q, by a descriptor of its own:
 * until place_fds is done, CONTROL_FD is the broker's, and who is behind it knows no such message.
 */
static _Noreturn void run_zygote(const struct chute *c, const struct twin_request *q,
                                 const int *fds, int control)
{
    const char *argv[] = {python,      program,    q->plain ? "--plain" : "--zygote",
                          "--imports", q->imports, NULL};
    char cpus[32], text[128];
    const char *envp[] = {"PATH=/usr/local/bin:/usr/bin:/bin", "HOME=/home/user", "LANG=C.UTF-8",
                          cpus, NULL};
    int r, say = fcntl(control, F_DUPFD_CLOEXEC, 64);
    sigset_t none;

    if (!q->imports[0])
        argv[3] = NULL;
    snprintf(cpus, sizeof(cpus), "OMP_NUM_THREADS=%u", q->cpus > 0 ? q->cpus : 1);
    signal(SIGCHLD, SIG_DFL);
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    r = become_zygote(c, q, fds, control);
    if (r == 0) {
        execve(python, (char *const *)(uintptr_t)argv, (char *const *)(uintptr_t)envp);
        r = -errno;
    }
    int n = snprintf(text, sizeof(text), "!%s", strerror(-r));
    send(say, text, (size_t)n, MSG_NOSIGNAL);
    _exit(127);
}

int zygote_begin(struct zygote *z, const struct chute *c, const struct twin_request *q,
                 const int *fds, struct sg_error *e)
{
    int control[2];

    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, control) < 0)
        return err_errno(e, "make a socket pair");
    *z = (struct zygote){.control = control[0],
                         .source = {.n_doors = q->n_doors, .registered = true, .umask = UMASK},
                         .plain = q->plain != 0,
                         .deadline_ns = clock_ns() + LOAD_NS};
    z->source.pid = fork();
    if (z->source.pid == 0)
        run_zygote(c, q, fds, control[1]);
    int r = z->source.pid < 0 ? err_errno(e, "start the zygote") : 0;
    close(control[1]);
    if (r < 0)
        zygote_lost(z);
    return r;
}

/* ---- taking hold of the zygote --------------------------------------------------------------- */

/* Reads the zygote's first packet: 1 it is ready, 0 not yet. */
static int take_word(struct zygote *z, struct sg_error *e)
{
    char text[256];
    ssize_t n = recv(z->control, text, sizeof(text) - 1, MSG_DONTWAIT);

    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return clock_ns() < z->deadline_ns
                   ? 0
                   : err_set(e, SG_ERR_INTERNAL, -ETIMEDOUT, "the zygote was not ready in %llu s",
                             LOAD_NS / 1000000000ull);
    if (n > 0 && text[0] == 'Q')
        return 1;
    text[n > 0 ? n : 0] = '\0';
    return err_set(e, SG_ERR_INTERNAL, -EIO, "the zygote did not start%s%.200s",
                   text[0] == '!' ? ": " : "", text[0] == '!' ? text + 1 : "");
}

/* The zygote has said that it will read now. If it is not inside that read yet, it runs on for a
 * short time. */
static int stop_in_read(struct zygote *z, struct sg_error *e)
{
    uint64_t deadline = clock_ns() + SETTLE_NS;
    int r = tracee_seize(z->source.pid, e);

    while (r == 0) {
        r = tracee_stop(z->source.pid, e);
        if (r == 0 && cpu_save(z->source.pid, &z->source.state) < 0)
            r = err_set(e, SG_ERR_INTERNAL, -EIO, "read the zygote's registers");
        if (r < 0)
            break;
        z->source.call_at = cpu_reading_from(z->source.pid, &z->source.state, CONTROL_FD);
        if (z->source.call_at)
            return 0;
        if (clock_ns() > deadline)
            return err_set(e, SG_ERR_INTERNAL, -ETIMEDOUT, "the zygote does not become idle");
        r = tracee_continue(z->source.pid, e);
        poll(NULL, 0, 1);
    }
    return r;
}

static int inject(const struct zygote *z, int64_t nr, int64_t a, int64_t b, int64_t c,
                  struct sg_error *e)
{
    struct cpu_call call = {.nr = nr, .args = {a, b, c}};

    return tracee_call(z->source.pid, &z->source.state, z->source.call_at, &call, NULL, e);
}

/* From here on the zygote has descriptors 0 to 2 and the bottom of the chute as 3, and no
 * others. */
static int settle_fds(struct zygote *z, struct sg_error *e)
{
    int r = inject(z, SYS_dup3, COPIES_FD, CONTROL_FD, O_CLOEXEC, e);

    return r < 0 ? r : inject(z, SYS_close_range, COPIES_FD, ~0U, 0, e);
}

/* On fork, Linux does not copy the page tables of a file mapping unless the process has written to
 * one of its pages. Each copy would fault in all of the interpreter's code again. So one word of
 * each is written over itself. */
static void own_the_code(const struct zygote *z)
{
    static const char *const wanted[] = {"/usr/bin/python3", "/libc.so"};
    AUTO(free_p) char *maps = NULL;
    char path[32];

    snprintf(path, sizeof(path), "/proc/%d/maps", z->source.pid);
    if (file_read(AT_FDCWD, path, MAPS_MAX, &maps, NULL) < 0)
        return;
    for (char *line = maps, *next; line && *line; line = next) {
        unsigned long long start;
        char read, write;

        next = strchr(line, '\n');
        if (next)
            *next++ = '\0';
        if (sscanf(line, "%llx-%*x %c%c", &start, &read, &write) != 3 || read != 'r' ||
            write == 'w')
            continue;
        for (size_t i = 0; i < ARRAY_SIZE(wanted); i++)
            if (strstr(line, wanted[i]))
                cpu_own_call(z->source.pid, start);
    }
}

/* Linux writes the thread's address to memory; the page of the tables is used for that while it is
 * empty. */
static void learn_thread(struct zygote *z)
{
    struct source *s = &z->source;
    uint64_t tid = 0;

    source_learn_thread(s->pid, &s->thread);
    if (inject(z, SYS_prctl, PR_GET_TID_ADDRESS, (int64_t)s->page, 0, NULL) == 0 &&
        tracee_read(s->pid, s->page, &tid, sizeof(tid)) == 0)
        s->thread.tid = tid;
}

/* A copy has one thread only. Threads of numeric libraries have ended by now
 * (kernels/python/_sandglass/pools.py); any other would be missing in the copy. */
static int check_threads(const struct zygote *z, struct sg_error *e)
{
    AUTO(close_p) int dir = -1;
    size_t n = procfs_open(z->source.pid, &dir) < 0 ? 0 : procfs_count_threads(dir);

    if (n <= 1)
        return 0;
    return err_set(e, SG_ERR_INTERNAL, -EBUSY,
                   "the zygote has %zu threads, of which one can be copied: warm_kernels names a "
                   "library that starts them",
                   n);
}

int zygote_hold(struct zygote *z, const struct seccomp_prog *filter, struct sg_error *e)
{
    int r = take_word(z, e);

    if (r <= 0)
        return r;
    r = check_threads(z, e);
    if (r < 0)
        return r;
    z->filter = filter;
    z->held = z->plain;
    if (z->plain)
        return 1;
    r = CPU_KNOWN ? stop_in_read(z, e)
                  : err_set(e, SG_ERR_UNSUPPORTED, -ENOSYS,
                            "this processor is not supported for copying kernels");
    if (r == 0)
        r = settle_fds(z, e);
    if (r == 0)
        r = source_map_page(&z->source, e);
    if (r < 0)
        return r;
    learn_thread(z);
    own_the_code(z);
    r = tables_install(&z->source, filter, e);
    if (r < 0)
        return r;
    close(steal_fd(&z->control));
    z->held = true;
    return 1;
}

int chute_open(struct chute *ret, struct sg_error *e)
{
    int s[2];

    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, s) < 0)
        return err_errno(e, "make a socket pair");
    *ret = (struct chute){.top = s[0], .bottom = s[1]};
    return 0;
}

void chute_clear(const struct chute *c)
{
    char byte;

    while (ipc_recv(c->bottom, &byte, 1, NULL) > 0)
        ;
}

void zygote_lost(struct zygote *z)
{
    if (z->ahead > 0)
        tracee_kill(z->ahead);
    close_p(&z->control);
    *z = (struct zygote)ZYGOTE_NONE;
}

void zygote_end(struct zygote *z)
{
    if (z->source.pid > 0)
        tracee_kill(z->source.pid);
    zygote_lost(z);
}
