/* A real agent to test against: pid 1 of its own user, pid and mount namespaces, with its own user
 * id, its capabilities and undumpable, over empty /home, /root, /run and /tmp; and the host's end
 * of its channel. Needs root, as the program does. */
#pragma once

#include <fcntl.h>
#include <net/if.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "inside/agent/agent.h"
#include "inside/agent/view.h"
#include "lib/base/clock.h"
#include "lib/base/fd.h"
#include "lib/ipc/ipc.h"
#include "lib/channel/chan.h"
#include "lib/channel/wire.h"
#include "tap.h"
#include "inside/stage/confine.h"
#include "warden/layers/tree.h"
#include "inside/stage/stage.h"

#define AGENT_WAIT_MS 20000

struct agent_host {
    pid_t pid; /* of the agent's parent */
    struct chan *chan;
    int line; /* -1: the agent has its channel for good */
};

/* One operation and everything that came back. */
struct call {
    struct chan_stream *stream;
    bool started, watching, ended;
    bool executing;
    bool hold; /* take output but grant no credit for it */
    uint32_t pid;
    int status;
    unsigned entries;
    size_t held;
    char message[512];
    struct strbuf out, err, result, events;
    struct strbuf entry; /* the last that came */
    struct strbuf story; /* output and packets of a kernel, as they came */
};

static inline bool lo_up(void)
{
    struct ifreq r = {.ifr_name = "lo", .ifr_flags = IFF_UP};
    AUTO(close_p) int s = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

    return s >= 0 && ioctl(s, SIOCSIFFLAGS, &r) == 0;
}

/* Whether agents on a line may ask for kernels there. */
static bool host_twins;
/* Where agents find the kernels' programs: a copy, since the sources may be in one of the
 * directories that are covered, or where nobody else may look. */
#define HOST_KERNELS "/run/kernels"
static const char *host_kernels = HOST_KERNELS;

/* `from` was opened by root outside. */
static inline bool copy_kernels(int from)
{
    char path[48];
    bool done;

    snprintf(path, sizeof(path), "/proc/self/fd/%d/.", from);
    done = from >= 0 && tree_copy(path, AT_FDCWD, HOST_KERNELS, NULL) == 0;
    close_p(&from);
    return done;
}

/* Where the agent finds the figures of the sandbox's group; NULL: nowhere. */
static const struct view_fds *host_view;

/* A root directory of the test's own, in place of the machine's with some of it covered: what is
 * done first, as root outside, then inside. See agent_root.h. */
static bool (*host_outside)(void);
static bool (*host_inside)(void);

static inline bool host_cover(void)
{
    static const char *const dirs[] = {"/home", "/root", "/run", "/tmp"};

    if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
        mount("proc", "/proc", "proc", 0, NULL) < 0 ||
        /* The host's terminals may belong to a group that has no number here. */
        mount("devpts", "/dev/pts", "devpts", 0, "newinstance,mode=620,ptmxmode=666") < 0 ||
        mount("/dev/pts/ptmx", "/dev/ptmx", NULL, MS_BIND, NULL) < 0)
        return false;
    for (size_t i = 0; i < ARRAY_SIZE(dirs); i++)
        if (mount("t", dirs[i], "tmpfs", 0, "mode=0755,size=64m") < 0)
            return false;
    return chmod("/tmp", 01777) == 0 && mkdir("/home/user", 0755) == 0 &&
           chown("/home/user", 1000, 1000) == 0 && chdir("/") == 0;
}

static inline void agent_main(int fd, bool line, int kernels)
{
    static struct seccomp_prog filter, agent_filter;
    struct sg_error e = {0};
    struct agent_config config = {.filter = &filter,
                                  .agent_filter = &agent_filter,
                                  .disk_bytes = 64u << 20,
                                  .view = host_view,
                                  .pids = 4096,
                                  .line = line,
                                  .twins = line && host_twins,
                                  .kernels = host_kernels};

    if (!(host_inside ? host_inside() : host_cover()))
        _exit(101);
    if (!lo_up() || !copy_kernels(kernels))
        _exit(103);
    if (seccomp_compile(SECCOMP_PROGRAM, &filter, &e) < 0 ||
        seccomp_compile(SECCOMP_AGENT, &agent_filter, &e) < 0 || confine_agent(&config, &e) < 0) {
        printf("# %s\n", e.message);
        fflush(stdout);
        _exit(104);
    }
    _exit(agent_serve(fd, &config) < 0);
}

/* The namespaces need a parent outside to write the id maps: as in a sandbox, ids inside are others
 * outside, and root outside is nobody inside. */
static inline void agent_parent(int fd, bool line)
{
    int go[2], ready[2], status;
    int kernels = open(SG_SOURCE_DIR "/kernels", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    char c, path[64];

    if (pipe2(go, O_CLOEXEC) < 0 || pipe2(ready, O_CLOEXEC) < 0)
        _exit(100);
    pid_t pid = fork();
    if (pid == 0) {
        if ((host_outside && !host_outside()) ||
            unshare(CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWNET) < 0 ||
            write(ready[1], "", 1) != 1 || read(go[0], &c, 1) != 1 || setresgid(0, 0, 0) < 0 ||
            setresuid(0, 0, 0) < 0)
            _exit(100);
        pid = fork();
        if (pid == 0)
            agent_main(fd, line, kernels);
        close(fd);
        close_p(&kernels);
        waitpid(pid, &status, 0);
        _exit(WIFEXITED(status) ? WEXITSTATUS(status) : 99);
    }
    close(fd);
    if (read(ready[0], &c, 1) != 1)
        _exit(98);
    snprintf(path, sizeof(path), "/proc/%d/uid_map", pid);
    int r = file_write(AT_FDCWD, path, "0 300000000 65536");
    snprintf(path, sizeof(path), "/proc/%d/gid_map", pid);
    if (r < 0 || file_write(AT_FDCWD, path, "0 300000000 65536") < 0 || write(go[1], "", 1) != 1)
        _exit(97);
    waitpid(pid, &status, 0);
    _exit(WIFEXITED(status) ? WEXITSTATUS(status) : 96);
}

static inline void host_keep_entry(struct call *call, const struct wire_reader *r)
{
    strbuf_reset(&call->entry);
    strbuf_add(&call->entry, r->p, (size_t)(r->end - r->p));
}

/* "ID LANGUAGE CWD STATE CELLS DEFAULT PID TWIN VARIABLES" */
static inline void host_on_kernel(struct call *call, struct wire_reader *r)
{
    const char *id = wire_get_str(r, KERNEL_ID_LEN), *language = wire_get_str(r, 64);
    const char *cwd = wire_get_str(r, OPS_PATH_MAX);
    uint32_t n[7];

    for (size_t i = 0; i < ARRAY_SIZE(n); i++)
        n[i] = wire_get_u32(r);
    EXPECT(!n[3] || !n[5]); /* cold: no twin */
    strbuf_addf(&call->events, "%s %s %s %u %u %u %u %u ", id, language, cwd, n[0], n[1], n[2],
                n[4], n[5]);
    for (uint32_t i = 0; i < n[6]; i++)
        strbuf_addf(&call->events, "%s%s", i ? "," : "", wire_get_str(r, OPS_ARG_MAX));
    EXPECT(wire_done(r));
    strbuf_addch(&call->events, '\n');
}

static inline void host_on_event(struct chan *c, struct chan_stream *s, uint8_t what, const void *p,
                                 size_t len)
{
    struct call *call = chan_stream_owner(s);
    struct wire_reader r;

    (void)c;
    wire_reader_init(&r, p, len);
    if (what == EVENT_STARTED) {
        call->started = true;
        call->pid = wire_get_u32(&r);
    } else if (what == EVENT_WATCHING) {
        call->watching = true;
    } else if (what == EVENT_CHANGE) {
        uint32_t change = wire_get_u32(&r);
        const char *path = wire_get_str(&r, OPS_PATH_MAX);
        bool plain = wire_done(&r), with = !plain && wire_get_u32(&r) == 1;
        strbuf_addf(&call->events, "%u:%s%s\n", change, path, plain ? "" : with ? "+" : "-");
        if (with)
            host_keep_entry(call, &r);
    } else if (what == EVENT_ENTRY) {
        call->entries++;
        host_keep_entry(call, &r);
        wire_get_str(&r, OPS_PATH_MAX);
        strbuf_addf(&call->events, "%s\n", wire_get_str(&r, OPS_PATH_MAX));
    } else if (what == EVENT_EXECUTING) {
        uint32_t cell = wire_get_u32(&r);
        call->executing = true;
        strbuf_addf(&call->events, "%u:%s\n", cell, wire_get_str(&r, 1024));
    } else if (what == EVENT_CONTEXT) {
        call->entries++;
        host_keep_entry(call, &r);
        const char *id = wire_get_str(&r, KERNEL_ID_LEN), *language = wire_get_str(&r, 64);
        const char *cwd = wire_get_str(&r, OPS_PATH_MAX);
        uint32_t state = wire_get_u32(&r), cells = wire_get_u32(&r);
        strbuf_addf(&call->events, "%s %s %s %u %u %u\n", id, language, cwd, state, cells,
                    wire_get_u32(&r));
    } else if (what == EVENT_KERNEL) {
        host_on_kernel(call, &r);
    } else if (what == EVENT_HELD) {
        call->started = true;
    }
}

static inline void host_tell_story(struct call *call, uint8_t sub, const char *p, size_t len)
{
    strbuf_addch(&call->story, sub == CHAN_KERNEL ? 'k' : sub == CHAN_STDERR ? '2' : '1');
    for (size_t i = 0; i < len && !call->story.truncated; i++)
        strbuf_addch(&call->story, (char)(p[i] ? p[i] : '='));
    strbuf_addch(&call->story, '\n');
}

static inline void host_on_end(struct chan *c, struct chan_stream *s, int status,
                               const char *message, const void *result, size_t len)
{
    struct call *call = chan_stream_owner(s);

    (void)c;
    call->ended = true;
    call->stream = NULL;
    call->status = status;
    snprintf(call->message, sizeof(call->message), "%s", message);
    strbuf_add(&call->result, result, len);
}

static inline void host_on_data(struct chan *c, struct chan_stream *s, uint8_t sub, const void *p,
                                size_t len)
{
    struct call *call = chan_stream_owner(s);

    host_tell_story(call, sub, p, len);
    if (sub != CHAN_KERNEL)
        strbuf_add(sub == CHAN_STDERR ? &call->err : &call->out, p, len);
    if (call->hold)
        call->held += len;
    else
        chan_consumed(c, s, len);
}

static inline void host_on_credit(struct chan *c, struct chan_stream *s)
{
    (void)c;
    (void)s;
}

static inline struct chan *host_chan(int fd)
{
    static const struct chan_handlers handlers = {.on_event = host_on_event,
                                                  .on_end = host_on_end,
                                                  .on_data = host_on_data,
                                                  .on_credit = host_on_credit};

    return chan_new(fd, CHAN_HOST, &handlers, NULL);
}

/* Returns our end of the agent's socket. */
static inline int host_fork(struct agent_host *h, bool line)
{
    int fds[2];

    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) < 0)
        abort();
    fflush(stdout);
    h->pid = fork();
    if (h->pid == 0) {
        close(fds[0]);
        agent_parent(fds[1], line);
    }
    close(fds[1]);
    return fds[0];
}

static inline void host_start(struct agent_host *h)
{
    h->line = -1;
    h->chan = host_chan(host_fork(h, false));
}

/* Over a line: a new channel, in place of the one there was. */
static inline void host_connect(struct agent_host *h)
{
    int fds[2];

    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) < 0)
        abort();
    struct line_message m = {.what = LINE_CHANNEL};
    EXPECT(ipc_send(h->line, &m, sizeof(m), &fds[1], 1) == 0);
    close(fds[1]);
    chan_free(h->chan);
    h->chan = host_chan(fds[0]);
}

static inline void host_start_line(struct agent_host *h)
{
    h->chan = NULL;
    h->line = host_fork(h, true);
    host_connect(h);
}

/* The agent ends by itself, and without an error. */
static inline bool host_ended(struct agent_host *h)
{
    int status;

    waitpid(h->pid, &status, 0);
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

/* It must, when its line or channel closes. */
static inline void host_stop(struct agent_host *h)
{
    chan_free(h->chan);
    close_p(&h->line);
    EXPECT(host_ended(h));
}

static inline bool host_wait(struct agent_host *h, const bool *flag, int ms)
{
    uint64_t deadline = clock_ns() + (uint64_t)ms * 1000000;

    while (!*flag && clock_ns() < deadline) {
        struct pollfd p = {.fd = chan_fd(h->chan),
                           .events = (short)(POLLIN | (chan_wants_write(h->chan) ? POLLOUT : 0))};
        poll(&p, 1, clock_poll_ms(deadline));
        if (chan_pump(h->chan) < 0) {
            printf("# the channel broke\n");
            return false;
        }
    }
    return *flag;
}

static inline void call_init(struct call *c)
{
    *c = (struct call){0};
    strbuf_init(&c->out, 64u << 20);
    strbuf_init(&c->err, 64u << 20);
    strbuf_init(&c->result, 1u << 20);
    strbuf_init(&c->events, 64u << 20);
    strbuf_init(&c->entry, FRAME_PAYLOAD_MAX);
    strbuf_init(&c->story, 1u << 20);
}

static inline void call_done(struct call *c)
{
    strbuf_done(&c->out);
    strbuf_done(&c->err);
    strbuf_done(&c->result);
    strbuf_done(&c->events);
    strbuf_done(&c->entry);
    strbuf_done(&c->story);
}

/* fmt: 's' const char *, 'u' uint32_t, 'U' uint64_t. */
static inline void call_open(struct agent_host *h, struct call *c, enum chan_op op, const char *fmt,
                             ...)
{
    struct strbuf req;
    va_list ap;

    call_init(c);
    strbuf_init(&req, OPS_OPEN_MAX);
    va_start(ap, fmt);
    for (; *fmt; fmt++) {
        if (*fmt == 's')
            wire_put_str(&req, va_arg(ap, const char *));
        else if (*fmt == 'u')
            wire_put_u32(&req, va_arg(ap, uint32_t));
        else
            wire_put_u64(&req, va_arg(ap, uint64_t));
    }
    va_end(ap);
    c->stream = chan_open(h->chan, op, req.buf, req.len, c);
    strbuf_done(&req);
}

/* Until it has said so much. */
static inline bool host_wait_output(struct agent_host *h, struct call *c, const char *text)
{
    uint64_t deadline = clock_ns() + AGENT_WAIT_MS * 1000000ull;

    while (!strstr(c->out.buf, text) && !c->ended && clock_ns() < deadline)
        host_wait(h, &c->ended, 10);
    return strstr(c->out.buf, text) != NULL;
}

/* Runs it to its end. The caller owes call_done. */
#define CALL(h, c, ...)                                   \
    do {                                                  \
        call_open(h, c, __VA_ARGS__);                     \
        EXPECT(host_wait(h, &(c)->ended, AGENT_WAIT_MS)); \
    } while (0)

/* A shell as `user` in its home. */
static inline void shell_open(struct agent_host *h, struct call *c, const char *user,
                              uint32_t flags, const char *script)
{
    call_open(h, c, OP_PROCESS_START, "ssuuuUssusssu", user, "", flags, 24u, 80u, (uint64_t)0, "",
              "", 3u, "/bin/bash", "-c", script, 0u);
}

static inline void shell(struct agent_host *h, struct call *c, const char *user, const char *script)
{
    shell_open(h, c, user, 0, script);
    EXPECT(host_wait(h, &c->ended, AGENT_WAIT_MS));
}

struct process_result {
    uint32_t how, code;
    uint64_t utime_us, stime_us, maxrss, disk_used;
    uint32_t disk_full;
    uint64_t dropped_out, dropped_err;
    uint32_t timed_out;
    uint64_t memory_limit;
};

static inline struct process_result call_process(const struct call *c)
{
    struct process_result p = {.how = 99, .code = 99};
    struct wire_reader r;

    EXPECT(c->status == 0);
    if (c->status != 0)
        printf("# %s\n", c->message);
    wire_reader_init(&r, c->result.buf, c->result.len);
    p.how = wire_get_u32(&r);
    p.code = wire_get_u32(&r);
    p.utime_us = wire_get_u64(&r);
    p.stime_us = wire_get_u64(&r);
    p.maxrss = wire_get_u64(&r);
    p.disk_used = wire_get_u64(&r);
    p.disk_full = wire_get_u32(&r);
    p.dropped_out = wire_get_u64(&r);
    p.dropped_err = wire_get_u64(&r);
    p.timed_out = wire_get_u32(&r);
    p.memory_limit = wire_get_u64(&r);
    EXPECT(wire_done(&r));
    return p;
}

/* The output of a script, which must succeed. Valid until the next call. */
static inline const char *shell_says(struct agent_host *h, const char *user, const char *script)
{
    static char text[65536];
    struct call c;

    shell(h, &c, user, script);
    struct process_result p = call_process(&c);
    EXPECT(p.how == PROC_EXITED && p.code == 0);
    if (c.err.len > 0)
        printf("# %s: %s\n", script, c.err.buf);
    snprintf(text, sizeof(text), "%s", c.out.buf);
    call_done(&c);
    return text;
}

/* No process of that name is left. One that was killed may still be dying. */
static inline bool host_runs_none(struct agent_host *h, const char *name)
{
    char script[160];

    snprintf(script, sizeof(script),
             "for i in {1..1000}; do pgrep %s >/dev/null || break; sleep 0.01; done; "
             "pgrep -c %s || true",
             name, name);
    return strcmp(shell_says(h, "user", script), "0\n") == 0;
}
