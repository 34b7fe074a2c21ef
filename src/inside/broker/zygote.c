#include "inside/broker/zygote.h"

#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/socket.h>

#include "lib/base/clock.h"
#include "lib/base/fd.h"
#include "lib/ipc/ipc.h"
#include "lib/base/sys.h"
#include "inside/broker/interpreter.h"
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

/* ---- starting the zygote --------------------------------------------------------------------- */

static _Noreturn void run_zygote(const struct chute *c, const struct twin_request *q,
                                 const int *fds, int control)
{
    /* The zygote joins the memory group only. Copies start in its other groups and join those of
     * their own; an H stays in them. An error is sent in place of the interpreter's Q. */
    struct interpreter i = {.mode = q->plain ? "--plain" : "--zygote",
                            .imports = q->imports,
                            .first_id = q->first_id,
                            .cpus = q->cpus,
                            .door = fds[TWIN_ZYGOTE_FDS],
                            .three = control,
                            .four = c->bottom,
                            .say = control,
                            .go_ahead = -1};

    memcpy(i.namespaces, fds, sizeof(i.namespaces));
    interpreter_run(&i);
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
