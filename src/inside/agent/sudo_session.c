/* Serves one sudo, from its connection to its result, in a process of its own. This process has the
 * agent's rights and none of its descriptors. Everything it reads is hostile. */
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "inside/agent/accounts.h"
#include "inside/agent/door.h"
#include "inside/agent/environ.h"
#include "inside/agent/launch.h"
#include "inside/agent/path.h"
#include "inside/agent/reaper.h"
#include "lib/base/clock.h"
#include "lib/ipc/ipc.h"
#include "lib/base/sys.h"
#include "wire/sudo.h"
#include "inside/stage/confine.h"

#define REQUEST_MS 5000 /* for a client to send its request */
#define LISTEN_FD  3
#define READY_FD   4

struct sudo_request {
    struct agent_user as;
    uint32_t flags;
    char cwd[OPS_PATH_MAX];
    const char *program;
    struct strings args, env;
};

/* Closes the copies of the agent's descriptors, which would keep the pipes of other programs
 * open. */
static void keep_only(int listen_fd, int ready_fd)
{
    int l = fcntl(listen_fd, F_DUPFD_CLOEXEC, READY_FD + 1);
    int r = fcntl(ready_fd, F_DUPFD_CLOEXEC, READY_FD + 1);

    if (l < 0 || r < 0 || dup3(l, LISTEN_FD, O_CLOEXEC) < 0 || dup3(r, READY_FD, O_CLOEXEC) < 0 ||
        sys_close_range(READY_FD + 1, ~0U, 0) < 0)
        _exit(1);
}

static void send_result(int conn, enum sudo_result what, uint32_t code, const char *message)
{
    AUTO(strbuf_done) struct strbuf out = strbuf_upto(1024);

    wire_put_u32(&out, what);
    wire_put_u32(&out, code);
    wire_put_str(&out, message);
    send(conn, out.buf, out.len, MSG_NOSIGNAL | MSG_DONTWAIT);
}

static _Noreturn void refuse(int conn, const struct sg_error *e)
{
    send_result(conn, SUDO_REFUSED, 1, e->message);
    _exit(0);
}

static int check_peer(int conn, struct sg_error *e)
{
    struct ucred peer;
    socklen_t len = sizeof(peer);

    if (getsockopt(conn, SOL_SOCKET, SO_PEERCRED, &peer, &len) < 0)
        return err_errno(e, "read the caller's user id");
    if (!agent_user_by_uid(peer.uid))
        return err_set(e, SG_ERR_DENIED, -EPERM, "user id %u may not use sudo", (unsigned)peer.uid);
    return 0;
}

/* Receives the request with exactly three descriptors. */
static ssize_t receive(int conn, char *buf, struct ipc_fds *fds)
{
    struct pollfd p = {.fd = conn, .events = POLLIN};

    if (poll(&p, 1, REQUEST_MS) <= 0)
        return -ETIMEDOUT;
    ssize_t len = ipc_recv(conn, buf, SUDO_MESSAGE_MAX, fds);
    return len < 0 || (len > 0 && fds->n == SUDO_FDS) ? len : -EPROTO;
}

static int parse(struct sudo_request *q, const char *buf, size_t len, struct sg_error *e)
{
    struct wire_reader r = wire_reader_of(buf, len);

    if (wire_get_u32(&r) != SUDO_MAGIC)
        return err_set(e, SG_ERR_INVALID, -EPROTO, "not a request of this sudo");
    q->flags = wire_get_u32(&r);
    int res = agent_account_user(wire_get_str(&r, OPS_NAME_MAX), &q->as, e);
    if (res < 0)
        return res;
    if (path_absolute(&q->as, wire_get_str(&r, OPS_PATH_MAX - 1), q->cwd) < 0)
        return err_set(e, SG_ERR_INVALID, -ENAMETOOLONG, "the working directory is too deep");
    q->program = wire_get_str(&r, OPS_PATH_MAX - 1);
    res = environ_read_args(&r, &q->args, e);
    if (res == 0)
        res = environ_read_variables(&r, &q->env, e);
    if (res == 0 && (!wire_done(&r) || q->program[0] == '\0'))
        res = err_set(e, SG_ERR_INVALID, -EPROTO, "malformed request");
    return res;
}

static int start(const struct sudo_request *q, const int fds[SUDO_FDS],
                 const struct agent_config *config, pid_t *ret_pid, int *ret_report,
                 struct sg_error *e)
{
    AUTO(close_p) int cwd = -1;
    int r = confine_fs_begin(&q->as);

    if (r == 0) {
        cwd = path_open(AT_FDCWD, q->cwd, O_PATH | O_DIRECTORY, 0);
        confine_fs_end();
        r = cwd < 0 ? cwd : 0;
    }
    if (r < 0)
        return path_error(e, r, "use as working directory", q->cwd);
    struct launch l = {.as = &q->as,
                       .program = q->program,
                       .argv = q->args.v,
                       .envp = q->env.v,
                       .cwd_fd = cwd,
                       .cwd = q->cwd,
                       .cwd_optional = true,
                       .stdio = {fds[0], fds[1], fds[2]},
                       .control = -1,
                       .tty = (q->flags & SUDO_TTY) != 0};
    return launch_start(&l, config, ret_pid, ret_report, e);
}

static bool may_forward(uint32_t sig)
{
    return sig == SIGINT || sig == SIGTERM || sig == SIGHUP || sig == SIGQUIT || sig == SIGUSR1 ||
           sig == SIGUSR2 || sig == SIGWINCH || sig == SIGCONT;
}

/* False: the client has gone, or sends nonsense. The kernel drops descriptors that it attaches. */
static bool take_message(int conn, pid_t pid)
{
    uint8_t buf[8];
    struct wire_reader r = wire_reader_of(buf, 4);
    ssize_t n = recv(conn, buf, sizeof(buf), MSG_DONTWAIT | MSG_TRUNC);

    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return true;
    if (n != 4)
        return false;
    uint32_t sig = wire_get_u32(&r);
    if (may_forward(sig) && kill(-pid, (int)sig) < 0)
        kill(pid, (int)sig); /* a child that has not called setsid yet has no group */
    return true;
}

struct command {
    int conn, report, signals;
    pid_t pid;
    uint64_t kill_ns; /* when to kill the command, after its client has gone; 0: it has not */
};

static void hang_up(struct command *c)
{
    close(c->conn);
    c->conn = -1;
    kill(-c->pid, SIGHUP);
    kill(-c->pid, SIGCONT);
    c->kill_ns = clock_ns() + SUDO_HANGUP_MS * 1000000ull;
}

static void check_report(struct command *c)
{
    struct sg_error e = {0};
    int r = launch_result(c->report, &e);

    if (r < 0) {
        if (c->conn >= 0)
            refuse(c->conn, &e);
        _exit(0);
    }
    if (r == 1) {
        close(c->report);
        c->report = -1;
    }
}

static void check_exit(struct command *c)
{
    struct signalfd_siginfo info;
    int status;

    if (c->report >= 0)
        check_report(c);
    while (read(c->signals, &info, sizeof(info)) > 0)
        ;
    if (waitpid(c->pid, &status, WNOHANG) != c->pid)
        return;
    if (c->conn >= 0 && WIFSIGNALED(status))
        send_result(c->conn, SUDO_KILLED, (uint32_t)WTERMSIG(status), "");
    else if (c->conn >= 0)
        send_result(c->conn, SUDO_EXITED, (uint32_t)WEXITSTATUS(status), "");
    _exit(0);
}

static _Noreturn void attend(struct command *c)
{
    for (;;) {
        struct pollfd p[3] = {{.fd = c->signals, .events = POLLIN},
                              {.fd = c->report, .events = POLLIN},
                              {.fd = c->conn, .events = POLLIN}};
        if (poll(p, 3, c->kill_ns ? clock_poll_ms(c->kill_ns) : -1) < 0 && errno != EINTR)
            _exit(1);
        if (c->kill_ns && clock_ns() >= c->kill_ns) {
            session_kill(c->pid);
            _exit(0); /* pid 1 reaps what is left */
        }
        if (p[0].revents)
            check_exit(c);
        if (p[1].revents)
            check_report(c);
        if (p[2].revents && !take_message(c->conn, c->pid))
            hang_up(c);
    }
}

void sudo_session(int listen_fd, int ready_fd, const struct agent_config *config)
{
    struct sudo_request q = {0};
    struct sg_error e = {0};
    struct ipc_fds fds = {.max = SUDO_FDS};

    prctl(PR_SET_NAME, "sg-sudo");
    keep_only(listen_fd, ready_fd);
    struct command c = {.conn = accept4(LISTEN_FD, NULL, NULL, SOCK_CLOEXEC)};
    close(LISTEN_FD);
    close(READY_FD);
    c.signals = reaper_signals();
    char *buf = malloc(SUDO_MESSAGE_MAX);
    if (c.conn < 0 || c.signals < 0 || !buf)
        _exit(1);

    /* The request is read even after an error: closing the socket with unread data would discard
     * the answer. */
    ssize_t len = receive(c.conn, buf, &fds);
    if (len < 0)
        err_set(&e, SG_ERR_INVALID, (int)len, "received no valid request: %s", strerror((int)-len));
    if (len < 0 || check_peer(c.conn, &e) < 0 || parse(&q, buf, (size_t)len, &e) < 0 ||
        start(&q, fds.at, config, &c.pid, &c.report, &e) < 0)
        refuse(c.conn, &e);
    ipc_fds_close(&fds);
    strings_done(&q.args);
    strings_done(&q.env);
    free(buf);
    attend(&c);
}
