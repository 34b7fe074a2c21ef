/* sudo inside a sandbox: the real program against the agent's door. */
#include "agent_host.h"

#include <dirent.h>

#include "lib/base/fd.h"
#include "wire/sudo.h"
#include "warden/host/images.h"

#define SUDO_PATH "/tmp/bin/sudo"
/* In a sanitizer build the program would look for leaks at its end, which a sandbox does not allow.
 */
#define SUDO "env ASAN_OPTIONS=detect_leaks=0 " SUDO_PATH

/* /tmp of the agent is its own: the program is carried there through the file operations. */
static void sudo_start(struct agent_host *h)
{
    size_t len = (size_t)(sg_sudo_image_end - sg_sudo_image);
    bool never = false;
    struct call c;

    host_start(h);
    call_open(h, &c, OP_FILE_WRITE, "ssuuu", "root", SUDO_PATH, 0755u, FILE_PARENTS, 0u);
    for (size_t at = 0; at < len && !c.ended;) {
        size_t n = chan_credit(c.stream);

        n = n < len - at ? n : len - at;
        n = n < FRAME_PAYLOAD_MAX ? n : FRAME_PAYLOAD_MAX;
        if (n > 0)
            chan_send(h->chan, c.stream, 0, sg_sudo_image + at, n);
        at += n;
        host_wait(h, &never, n > 0 ? 0 : 5);
    }
    chan_eof(h->chan, c.stream);
    EXPECT(host_wait(h, &c.ended, AGENT_WAIT_MS) && c.status == 0);
    call_done(&c);
}

/* Runs a script that calls $S and expects this output (both streams) and status. */
static void expect(struct agent_host *h, const char *user, const char *script, const char *output,
                   uint32_t code)
{
    char line[4096];
    struct call c;

    snprintf(line, sizeof(line), "S='" SUDO "'; exec 2>&1; %s", script);
    shell(h, &c, user, line);
    EXPECT_STR(c.out.buf, output);
    struct process_result p = call_process(&c);
    EXPECT(p.how == PROC_EXITED && p.code == code);
    if (p.code != code)
        printf("# %s: %u\n", script, p.code);
    call_done(&c);
}

TEST(runs_as_the_other_user)
{
    struct agent_host h;

    sudo_start(&h);
    expect(&h, "user", "$S id -u; $S -u user id -u; $S -u '#0' id -u", "0\n1000\n0\n", 0);
    expect(&h, "root", "$S -u user sh -c 'id -u; id -G; exit 9'", "1000\n1000\n", 9);
    expect(&h, "user", "$S -u '#4711' id -u; $S -u '#4711' $S true; echo $?",
           "4711\nsudo: user id 4711 may not use sudo\n1\n", 0);
    expect(&h, "user", "$S -n touch /root/made && $S stat -c %u /root/made", "0\n", 0);
    expect(&h, "user", "echo in | $S cat; $S sh -c 'echo err >&2'", "in\nerr\n", 0);
    expect(&h, "user", "cd /tmp; $S pwd; $S -D / pwd; $S -D bin pwd", "/tmp\n/\n/tmp/bin\n", 0);
    expect(&h, "user", "$S $S $S id -u", "0\n", 0);
    expect(&h, "user", "$S grep -E 'CapEff|NoNewPrivs|Seccomp:' /proc/self/status",
           "CapEff:\t00000000000404fb\nNoNewPrivs:\t1\nSeccomp:\t2\n", 0);
    host_stop(&h);
}

TEST(environment_is_reset)
{
    struct agent_host h;

    sudo_start(&h);
    expect(
        &h, "user", "X=1 LD_PRELOAD= LC_ALL=C TERM=vt100 $S env | sort",
        "HOME=/root\nLANG=C.UTF-8\nLC_ALL=C\nLOGNAME=root\n"
        "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin\nSHELL=/bin/bash\n"
        "SUDO_COMMAND=env\nSUDO_GID=1000\nSUDO_UID=1000\nSUDO_USER=user\nTERM=vt100\nUSER=root\n",
        0);
    expect(&h, "user",
           "export X=1 Y=2; $S -E sh -c 'echo $X $HOME'; $S -EH sh -c 'echo $HOME'; "
           "$S --preserve-env=Y,Z sh -c 'echo $X-$Y'; $S Q=3 R='a b' sh -c 'echo $Q$R'",
           "1 /home/user\n/root\n-2\n3a b\n", 0);
    expect(&h, "user", "$S -i pwd; $S -i echo '$HOME' 'a  b' \"it's\"; $S -s 'echo' '$0;x'",
           "/root\n/root a  b it's\nbash;x\n", 0);
    host_stop(&h);
}

TEST(ends_as_the_command_ends)
{
    struct agent_host h;
    struct call c;

    sudo_start(&h);
    expect(&h, "user", "$S sh -c 'exit 42'", "", 42);
    expect(&h, "user", "$S no-such; exit $?",
           "sudo: cannot run 'no-such': not found in PATH inside the sandbox\n", 1);
    shell(&h, &c, "user", "exec " SUDO " sh -c 'kill -USR1 $$'");
    struct process_result p = call_process(&c);
    EXPECT(p.how == PROC_KILLED && p.code == SIGUSR1);
    call_done(&c);

    /* a signal for sudo is a signal for the command */
    shell_open(&h, &c, "user", 0,
               "exec " SUDO " bash -c 'trap \"echo caught; exit 5\" TERM; echo ready; "
               "while :; do sleep 0.05; done'");
    while (c.out.len == 0 && !c.ended)
        host_wait(&h, &c.ended, 10);
    uint8_t term[4] = {SIGTERM, 0, 0, 0};
    chan_control(h.chan, c.stream, CONTROL_SIGNAL, term, sizeof(term));
    EXPECT(host_wait(&h, &c.ended, AGENT_WAIT_MS));
    EXPECT_STR(c.out.buf, "ready\ncaught\n");
    EXPECT(call_process(&c).code == 5);
    call_done(&c);

    /* sudo is gone: so is the command, also one that ignores the hint */
    expect(&h, "user",
           "exec 2>/dev/null; $S bash -c 'trap \"\" HUP; echo $$ > /tmp/pid; sleep 60 & wait' & "
           "until [ -s /tmp/pid ]; do sleep 0.01; done; kill -KILL $!; wait; sleep 2.5; "
           "kill -0 $(cat /tmp/pid) 2>/dev/null || $S kill -0 $(cat /tmp/pid) 2>/dev/null; echo $?",
           "1\n", 0);
    host_stop(&h);
}

TEST(options)
{
    struct agent_host h;

    sudo_start(&h);
    expect(&h, "user", "$S -v && $S -k && $S -K && echo fine", "fine\n", 0);
    expect(&h, "user", "$S -l | tail -1", "    (ALL : ALL) NOPASSWD: ALL\n", 0);
    expect(&h, "user", "$S -k -S -A -p x id -u </dev/null", "0\n", 0);
    expect(&h, "user", "$S -u no-one id", "sudo: unknown user no-one\n", 1);
    expect(&h, "user", "$S 2>&1 | head -1; $S --help | head -1; exit ${PIPESTATUS[0]}",
           "usage: sudo [-EHins] [-u USER] [-D DIR] [NAME=VALUE...] [COMMAND [ARG...]]\n"
           "usage: sudo [-EHins] [-u USER] [-D DIR] [NAME=VALUE...] [COMMAND [ARG...]]\n",
           0);
    expect(&h, "user", "$S --version | cut -c1-17", "sudo of Sandglass\n", 0);
    host_stop(&h);
}

TEST(terminal_of_its_own)
{
    struct agent_host h;
    struct call c;

    sudo_start(&h);
    shell_open(&h, &c, "user", PROC_PTY,
               SUDO " bash -ic 'tty -s && stty size'; " SUDO
                    " bash -c 'echo ready; exec sleep 100'; echo rc $?");
    while (!strstr(c.out.buf, "ready") && !c.ended)
        host_wait(&h, &c.ended, 10);
    EXPECT(strstr(c.out.buf, "24 80\r\n"));
    EXPECT(!strstr(c.out.buf, "job control"));
    chan_send(h.chan, c.stream, CHAN_STDIN, "\003", 1); /* ^C */
    EXPECT(host_wait(&h, &c.ended, AGENT_WAIT_MS));
    EXPECT(strstr(c.out.buf, "rc 130\r\n"));
    EXPECT(call_process(&c).code == 0);
    if (!strstr(c.out.buf, "rc 130\r\n"))
        printf("# %s\n", c.out.buf);
    call_done(&c);
    host_stop(&h);
}

static int child_of(int pid)
{
    char path[64], *text;

    snprintf(path, sizeof(path), "/proc/%d/task/%d/children", pid, pid);
    if (file_read(AT_FDCWD, path, 4096, &text, NULL) < 0)
        return -1;
    int child = (int)strtol(text, NULL, 10);
    free(text);
    return child;
}

/* Nobody inside can see the agent's descriptors, so they are counted from outside. */
static size_t agent_fds(const struct agent_host *h)
{
    char path[64];
    size_t n = 0;

    snprintf(path, sizeof(path), "/proc/%d/fd", child_of(child_of(h->pid)));
    DIR *d = opendir(path);
    while (d && readdir(d))
        n++;
    if (d)
        closedir(d);
    return n;
}

/* Clients that are not sudo: floods, descriptors by the hundred, nonsense. */
TEST(hostile_clients)
{
    static const char attack[] =
        "exec python3 -c \"\nimport socket, array, os, time\n"
        "P='\\0" SUDO_NAME "'\n"
        "def c():\n s=socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET); "
        "s.connect(P); return s\n"
        "fds=[os.open('/dev/null',0) for i in range(253)]\n"
        "for i in range(60):\n"
        " s=c(); "
        "s.sendmsg([b'x'*(i*100+1)],[(socket.SOL_SOCKET,socket.SCM_RIGHTS,array.array('i',fds))])\n"
        " s.recv(1000); s.close()\n"
        "for i in range(60):\n"
        " s=c(); s.send(os.urandom(1000)); s.recv(1000); s.close()\n"
        "for i in range(100): c().close()\n"
        "s=c(); s.send(b'y'*150000); assert b'valid' in s.recv(1000)\n"
        "print('survived')\n\"";
    struct agent_host h;
    struct call c;

    sudo_start(&h);
    shell_says(&h, "user", SUDO " true");
    size_t before = agent_fds(&h);
    shell(&h, &c, "user", attack);
    EXPECT_STR(c.out.buf, "survived\n");
    if (c.err.len)
        printf("# %s\n", c.err.buf);
    call_done(&c);
    for (int i = 0; i < 200 && agent_fds(&h) != before; i++)
        usleep(10000); /* the last ones are still being shown out */
    EXPECT(before > 0 && agent_fds(&h) == before);
    EXPECT(host_runs_none(&h, "sg-sudo"));
    expect(&h, "user", "$S id -u", "0\n", 0);

    /* All places taken by clients that say nothing: they are shown out, and the next is served. */
    expect(&h, "user",
           "python3 -c \"\nimport socket\nl=[]\nfor i in range(70):\n"
           " s=socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET); s.settimeout(0.1)\n"
           " try: s.connect('\\0" SUDO_NAME "')\n except OSError: pass\n l.append(s)\n"
           "import time; time.sleep(0.5)\n\"; $S id -u",
           "0\n", 0);
    host_stop(&h);
}

TAP_MAIN
