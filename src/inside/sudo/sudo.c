/* sudo, as far as a sandbox needs it: asks the agent to run the command, forwards signals, and ends
 * as the command ended. The exit status is the command's own, or 1 if something kept it from
 * running. */
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "lib/ipc/ipc.h"
#include "lib/channel/wire.h"
#include "inside/sudo/options.h"
#include "wire/sudo.h"
#include "inside/sudo/request.h"
#include "inside/sudo/terminal.h"

static const int forwarded[] = {SIGINT,  SIGTERM, SIGHUP,   SIGQUIT,
                                SIGUSR1, SIGUSR2, SIGWINCH, SIGCONT};

static int connect_to_agent(void)
{
    struct sockaddr_un addr;
    socklen_t len = sudo_address(&addr);
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

    if (fd < 0 || connect(fd, (struct sockaddr *)&addr, len) < 0)
        sudo_die("cannot reach the sandbox's agent: %s", strerror(errno));
    return fd;
}

static void send_request(int conn, const struct sudo_options *o, const struct terminal *t)
{
    bool tty = t->slave >= 0;
    int fds[SUDO_FDS] = {tty ? t->slave : 0, tty ? t->slave : 1, tty ? t->slave : 2};
    AUTO(strbuf_done) struct strbuf out = strbuf_upto(SUDO_MESSAGE_MAX);

    wire_put_u32(&out, SUDO_MAGIC);
    wire_put_u32(&out, tty ? SUDO_TTY : 0);
    request_build(o, &out);
    int r = ipc_send(conn, out.buf, out.len, fds, SUDO_FDS);
    if (r == -EBADF)
        sudo_die("standard input, output and error must be open");
    if (r < 0)
        sudo_die("cannot ask the sandbox's agent: %s", strerror(-r));
}

static int block_signals(void)
{
    sigset_t set;

    sigemptyset(&set);
    for (size_t i = 0; i < ARRAY_SIZE(forwarded); i++)
        sigaddset(&set, forwarded[i]);
    sigprocmask(SIG_BLOCK, &set, NULL);
    int fd = signalfd(-1, &set, SFD_CLOEXEC);
    if (fd < 0)
        sudo_die("cannot wait for signals: %s", strerror(errno));
    return fd;
}

static void forward_signal(int signals, int conn, const struct terminal *t)
{
    struct signalfd_siginfo info;
    AUTO(strbuf_done) struct strbuf out = strbuf_upto(4);

    if (read(signals, &info, sizeof(info)) != (ssize_t)sizeof(info))
        return;
    if (info.ssi_signo == SIGWINCH) {
        terminal_resize(t); /* the kernel sends the command SIGWINCH */
        return;
    }
    wire_put_u32(&out, info.ssi_signo);
    send(conn, out.buf, out.len, MSG_NOSIGNAL);
}

struct result {
    uint32_t what, code;
    char message[1024];
};

static bool receive_result(int conn, struct result *ret)
{
    char buf[sizeof(ret->message)];
    ssize_t n = recv(conn, buf, sizeof(buf), 0);
    struct wire_reader r = wire_reader_of(buf, n > 0 ? (size_t)n : 0);

    ret->what = wire_get_u32(&r);
    ret->code = wire_get_u32(&r);
    snprintf(ret->message, sizeof(ret->message), "%s", wire_get_str(&r, sizeof(buf)));
    return wire_done(&r);
}

/* Ends as the command did: with its status, or by the same signal. */
static _Noreturn void end_like(const struct result *res)
{
    int code = (int)(res->code & 0xff);
    sigset_t set;

    terminal_give_back();
    if (res->what == SUDO_REFUSED)
        sudo_die("%s", res->message);
    if (res->what == SUDO_EXITED)
        exit(code);
    signal(code, SIG_DFL);
    sigemptyset(&set);
    sigaddset(&set, code);
    sigprocmask(SIG_UNBLOCK, &set, NULL);
    raise(code);
    exit(128 + code);
}

static _Noreturn void attend(int conn, int signals, struct terminal *t)
{
    struct pollfd p[4] = {{.fd = conn, .events = POLLIN},
                          {.fd = signals, .events = POLLIN},
                          {.fd = t->master >= 0 ? 0 : -1, .events = POLLIN},
                          {.fd = t->master, .events = POLLIN}};
    struct result res;

    while (!p[0].revents) {
        if (poll(p, ARRAY_SIZE(p), -1) < 0 && errno != EINTR)
            sudo_die("cannot wait for the command: %s", strerror(errno));
        if (p[1].revents)
            forward_signal(signals, conn, t);
        if (p[2].revents && !terminal_input(t))
            p[2].fd = -1;
        if (p[3].revents && !terminal_output(t))
            p[3].fd = -1;
    }
    while (p[3].fd >= 0 && poll(&p[3], 1, 0) > 0 && terminal_output(t))
        ; /* the last output of the command */
    if (!receive_result(conn, &res)) {
        terminal_give_back();
        sudo_die("the sandbox's agent has closed the connection");
    }
    end_like(&res);
}

int main(int argc, char **argv)
{
    struct sudo_options o;
    struct terminal t;

    options_parse(argc, argv, &o);
    int conn = connect_to_agent();
    terminal_open(&t);
    int signals = block_signals();
    send_request(conn, &o, &t);
    terminal_take(&t);
    attend(conn, signals, &t);
}
