/* A tracer and its tracee: calls made in another process, tables worked off by it, and a read that
 * goes on afterwards as if nothing had been. */
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tap.h"
#include "inside/broker/cpu.h"
#include "inside/broker/tracee.h"

#if CPU_KNOWN

#define PAGE 4096

/* A child that adds one to each byte it reads. */
struct adder {
    pid_t pid;
    int sock;
    struct cpu_state state;
    uint64_t call_at;
};

static _Noreturn void add_one(int fd)
{
    char c;

    while (syscall(SYS_read, fd, &c, 1) == 1) {
        c++;
        syscall(SYS_write, fd, &c, 1);
    }
    _exit(0);
}

static struct adder adder_start(struct sg_error *e)
{
    struct adder a = {0};
    int s[2];
    sigset_t child;

    sigemptyset(&child);
    sigaddset(&child, SIGCHLD);
    sigprocmask(SIG_BLOCK, &child, NULL);
    EXPECT(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, s) == 0);
    a.pid = fork();
    if (a.pid == 0) {
        close(s[0]); /* it would wait for its own end */
        dup2(s[1], 3);
        add_one(3);
    }
    close(s[1]);
    a.sock = s[0];
    EXPECT(tracee_seize(a.pid, e) == 0);
    for (int i = 0; i < 2000 && !a.call_at; i++) {
        EXPECT(tracee_stop(a.pid, e) == 0 && cpu_save(a.pid, &a.state) == 0);
        a.call_at = cpu_reading_from(a.pid, &a.state, 3);
        if (!a.call_at) {
            EXPECT(tracee_continue(a.pid, e) == 0);
            poll(NULL, 0, 1);
        }
    }
    EXPECT(a.call_at != 0);
    return a;
}

static int64_t call(const struct adder *a, int64_t nr, int64_t x, int64_t y, int64_t z)
{
    struct cpu_call c = {.nr = nr, .args = {x, y, z, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0}};
    struct sg_error e;
    int64_t ret = -1;
    int r = tracee_call(a->pid, &a->state, a->call_at, &c, &ret, &e);

    return r < 0 ? r : ret;
}

TEST(calls_are_made_in_the_other_process)
{
    struct sg_error e = {0};
    struct adder a = adder_start(&e);

    EXPECT(call(&a, SYS_getpid, 0, 0, 0) == a.pid);
    EXPECT(call(&a, SYS_getppid, 0, 0, 0) == getpid());
    EXPECT(call(&a, SYS_close, 999, 0, 0) == -EBADF);
    tracee_kill(a.pid);
    EXPECT(kill(a.pid, 0) < 0); /* and reaped */
    close(a.sock);
}

TEST(a_failed_call_is_an_error_that_names_it)
{
    struct sg_error e = {0};
    struct adder a = adder_start(&e);
    struct cpu_call c = {.nr = SYS_close, .args = {999}};
    int64_t ret;

    EXPECT(tracee_call(a.pid, &a.state, a.call_at, &c, &ret, &e) == -EBADF);
    EXPECT(strstr(e.message, "Bad file descriptor") != NULL);
    tracee_kill(a.pid);
    close(a.sock);
}

TEST(a_table_is_worked_off_to_its_end)
{
    struct sg_error e = {0};
    struct adder a = adder_start(&e);
    struct cpu_call table[] = {{.nr = SYS_getpid},
                               {.nr = SYS_umask, .args = {027}},
                               {.nr = SYS_umask, .args = {022}},
                               {.nr = SYS_close, .args = {999}},
                               {.nr = SYS_getppid},
                               {.nr = CPU_TABLE_END}};
    uint64_t page = (uint64_t)call(&a, SYS_mmap, 0, PAGE, PROT_READ | PROT_WRITE | PROT_EXEC);

    EXPECT(tracee_write(a.pid, page, cpu_code, cpu_code_len) == 0);
    EXPECT(tracee_write(a.pid, page + 64, table, sizeof(table)) == 0);
    EXPECT(cpu_aim_table(a.pid, &a.state, page, page + 64, page + PAGE - 64) == 0);
    EXPECT(tracee_continue(a.pid, &e) == 0 && tracee_await_trap(a.pid, &e) == 0);
    EXPECT(tracee_read(a.pid, page + 64, table, sizeof(table)) == 0);
    EXPECT(table[0].ret == a.pid && table[2].ret == 027);
    EXPECT(table[3].ret == -EBADF); /* one that fails does not stop it */
    EXPECT(table[4].ret == getpid());
    tracee_kill(a.pid);
    close(a.sock);
}

/* The file stays with whoever has it open. */
TEST(code_becomes_the_process_s_own)
{
    static const uint8_t code[8] = {0x0f, 0x05}, other[2] = {0x90, 0x90};
    int fd = fcntl(memfd_create("code", 0), F_DUPFD, 10);
    struct sg_error e = {0};
    EXPECT(fd >= 0 && ftruncate(fd, PAGE) == 0 &&
           pwrite(fd, code, sizeof(code), 0) == sizeof(code));
    struct adder a = adder_start(&e);
    struct cpu_call map = {.nr = SYS_mmap,
                           .args = {0, PAGE, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0}};
    int64_t page = 0;

    EXPECT(tracee_call(a.pid, &a.state, a.call_at, &map, &page, &e) == 0);
    EXPECT(pwrite(fd, other, sizeof(other), 0) == sizeof(other));
    EXPECT(!cpu_is_call(a.pid, (uint64_t)page));
    EXPECT(pwrite(fd, code, sizeof(other), 0) == sizeof(other));
    EXPECT(cpu_own_call(a.pid, (uint64_t)page) == 0);
    EXPECT(pwrite(fd, other, sizeof(other), 0) == sizeof(other));
    EXPECT(cpu_is_call(a.pid, (uint64_t)page));
    map.args[3] = MAP_SHARED;
    EXPECT(tracee_call(a.pid, &a.state, a.call_at, &map, &page, &e) == 0);
    EXPECT(cpu_own_call(a.pid, (uint64_t)page) < 0); /* no way */
    tracee_kill(a.pid);
    close(a.sock);
    close(fd);
}

TEST(an_interrupted_read_goes_on)
{
    struct sg_error e = {0};
    struct adder a = adder_start(&e);
    struct cpu_state state = a.state;
    char c = 'a';

    EXPECT(call(&a, SYS_getpid, 0, 0, 0) == a.pid);
    cpu_restart_call(&state);
    EXPECT(cpu_load(a.pid, &state) == 0 && tracee_release(a.pid, &e) == 0);
    EXPECT(write(a.sock, &c, 1) == 1 && read(a.sock, &c, 1) == 1 && c == 'b');
    close(a.sock); /* it ends by itself */
    EXPECT(waitpid(a.pid, NULL, 0) == a.pid);
}

TEST(a_process_that_has_died_is_told_and_reaped)
{
    struct sg_error e = {0};
    struct adder a = adder_start(&e);
    int status;

    kill(a.pid, SIGKILL);
    EXPECT(tracee_wait(a.pid, &status, &e) == -ESRCH);
    EXPECT(waitpid(a.pid, NULL, 0) < 0);
    close(a.sock);
}

#else

TEST(there_is_nothing_to_test_for_this_processor)
{
    EXPECT(!CPU_KNOWN);
}

#endif

TAP_MAIN
