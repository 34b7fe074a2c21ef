/* Calls that are made in a process which is not ours: it notices nothing, whatever it was doing. */
#include "twin_rig.h"

#include <poll.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <time.h>

#include <linux/futex.h>

#include "lib/base/clock.h"
#include "inside/broker/open_files.h"
#include "inside/broker/remote_calls.h"

#if CPU_KNOWN

struct outcome {
    volatile int phase; /* 1: about to begin, 2: over */
    long result;
    int error;
    uint64_t took_ns;
    volatile uint64_t count;
    char cwd[128];
};

static struct outcome *outcome_new(void)
{
    return mmap(NULL, sizeof(struct outcome), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
                -1, 0);
}

static long sleep_a_while(struct outcome *o)
{
    struct timespec t = {.tv_nsec = 300000000};

    (void)o;
    return syscall(SYS_nanosleep, &t, NULL);
}

static long poll_a_while(struct outcome *o)
{
    (void)o;
    return syscall(SYS_poll, NULL, 0, 300);
}

static long select_a_while(struct outcome *o)
{
    struct timeval t = {.tv_usec = 300000};

    (void)o;
    return syscall(SYS_select, 0, NULL, NULL, NULL, &t);
}

static long wait_on_futex(struct outcome *o)
{
    struct timespec t = {.tv_nsec = 300000000};
    int word = 0;
    long r = syscall(SYS_futex, &word, FUTEX_WAIT, 0, &t, NULL, 0);

    (void)o;
    return r < 0 && errno == ETIMEDOUT ? 0 : r;
}

static long read_a_pipe(struct outcome *o)
{
    int p[2];
    char c;

    (void)o;
    if (pipe(p) < 0)
        return -1;
    if (fork() == 0) {
        poll(NULL, 0, 300);
        _exit(write(p[1], "x", 1) != 1);
    }
    return syscall(SYS_read, p[0], &c, 1) - 1;
}

static long compute(struct outcome *o)
{
    uint64_t end = clock_ns() + 300000000ull;

    while (o->count < 1000 || clock_ns() < end)
        for (int i = 0; i < 1000; i++)
            o->count++;
    return o->count % 1000 == 0 ? 0 : -1;
}

static pid_t start(long (*what)(struct outcome *o), struct outcome *o)
{
    pid_t pid;

    block_sigchld();
    o->phase = 0;
    pid = fork();
    if (pid == 0) {
        uint64_t begun = clock_ns();
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        o->phase = 1;
        o->result = what(o);
        o->error = errno;
        o->took_ns = clock_ns() - begun;
        if (!getcwd(o->cwd, sizeof(o->cwd)))
            o->cwd[0] = '\0';
        o->phase = 2;
        _exit(0);
    }
    for (int i = 0; i < 5000 && o->phase == 0; i++)
        poll(NULL, 0, 1);
    poll(NULL, 0, 20);
    return pid;
}

/* Its directory becomes another, some times over. */
static void called_during(long (*what)(struct outcome *o))
{
    static const char *const places[] = {"/tmp", "/usr", "/proc"};
    struct outcome *o = outcome_new();
    pid_t pid = start(what, o);
    int status;

    for (size_t i = 0; i < ARRAY_SIZE(places); i++) {
        struct sg_error e = {0};
        struct remote_calls v;

        remote_calls_init(&v);
        open_files_calls_cwd(places[i], &v);
        EXPECT(tracee_remote_calls(pid) == 0);
        EXPECT(tracee_stop_by(pid, clock_ns() + 1000000000ull) == 0);
        EXPECT(remote_calls_make(pid, &v, &e) == 0);
        EXPECT_STR(e.message, "");
        tracee_let_go(pid);
        remote_calls_done(&v);
        poll(NULL, 0, 10);
    }
    EXPECT(waitpid(pid, &status, 0) == pid && WIFEXITED(status));
    EXPECT(o->phase == 2 && o->result == 0);
    EXPECT(o->took_ns >= 290000000ull);
    EXPECT_STR(o->cwd, "/proc");
    munmap(o, sizeof(*o));
}

TEST(a_sleep_lasts_as_long_as_it_would_have)
{
    called_during(sleep_a_while);
}

TEST(poll_and_select_go_on)
{
    called_during(poll_a_while);
    called_during(select_a_while);
}

TEST(a_futex_is_waited_for)
{
    called_during(wait_on_futex);
}

TEST(a_read_goes_on)
{
    called_during(read_a_pipe);
}

TEST(who_computes_goes_on_computing)
{
    called_during(compute);
}

TEST(what_fails_is_told_and_the_process_goes_on)
{
    struct outcome *o = outcome_new();
    pid_t pid = start(sleep_a_while, o);
    struct sg_error e = {0};
    struct remote_calls v;

    remote_calls_init(&v);
    open_files_calls_cwd("/no such directory", &v);
    EXPECT(tracee_remote_calls(pid) == 0 && tracee_stop_by(pid, clock_ns() + 1000000000ull) == 0);
    EXPECT(remote_calls_make(pid, &v, &e) == -ENOENT);
    EXPECT(strstr(e.message, "/no such directory") != NULL);
    tracee_let_go(pid);
    EXPECT(waitpid(pid, NULL, 0) == pid);
    EXPECT(o->phase == 2 && o->result == 0);
    remote_calls_done(&v);
    munmap(o, sizeof(*o));
}

/* A signal of the right kind looks like the end of the table. */
TEST(calls_that_were_not_made_have_failed)
{
    struct cpu_call calls[2] = {{.ret = 0}};
    struct sg_error e = {0};
    struct remote_calls v;

    remote_calls_init(&v);
    open_files_calls_cwd("/", &v);
    remote_calls_add(&v, REMOTE_CALLS_ANY, &(struct cpu_call){.nr = SYS_getpid});
    remote_calls_place(&v, calls, 0);
    EXPECT(remote_calls_check(&v, calls, &e) == CPU_NOT_MADE);
    calls[0].ret = 0;
    EXPECT(remote_calls_check(&v, calls, &e) == CPU_NOT_MADE);
    calls[1].ret = -EPERM;
    EXPECT(remote_calls_check(&v, calls, &e) == 0);
    remote_calls_done(&v);
}

TEST(a_stopped_process_stays_so)
{
    struct outcome *o = outcome_new();
    pid_t pid = start(sleep_a_while, o);
    struct sg_error e = {0};
    struct remote_calls v;
    int status = 0;

    kill(pid, SIGSTOP);
    EXPECT(waitpid(pid, &status, WUNTRACED) == pid && WIFSTOPPED(status));
    remote_calls_init(&v);
    open_files_calls_cwd("/tmp", &v);
    EXPECT(tracee_remote_calls(pid) == 0 && tracee_stop_by(pid, clock_ns() + 1000000000ull) == 0);
    EXPECT(remote_calls_make(pid, &v, &e) == 0);
    EXPECT_STR(e.message, "");
    tracee_let_go(pid);
    poll(NULL, 0, 400);
    EXPECT(o->phase == 1);
    kill(pid, SIGCONT);
    EXPECT(waitpid(pid, NULL, 0) == pid);
    EXPECT(o->phase == 2);
    EXPECT_STR(o->cwd, "/tmp");
    remote_calls_done(&v);
    munmap(o, sizeof(*o));
}

/* ---- files ----------------------------------------------------------------------------------- */

struct places {
    char old[64], new[64];
};

static void write_file(const char *dir, const char *name, const char *text)
{
    char path[128];

    snprintf(path, sizeof(path), "%s/%s", dir, name);
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    EXPECT(fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text));
    close(fd);
}

static void remove_all(const char *dir)
{
    static const char *const names[] = {"a", "b"};
    char path[128];

    for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
        snprintf(path, sizeof(path), "%s/%s", dir, names[i]);
        unlink(path);
    }
    rmdir(dir);
}

static void open_files(void *arg)
{
    const struct places *p = arg;

    if (chdir(p->old) < 0 || open("a", O_RDWR | O_CLOEXEC) != 4 || lseek(4, 3, SEEK_SET) != 3 ||
        open("b", O_WRONLY | O_APPEND) != 5 || dup2(4, 9) != 9)
        _exit(1);
}

static off_t offset_of(pid_t pid, int fd, char ret_path[256], int *ret_flags)
{
    char path[64], line[256] = "";
    long long at = -1;

    snprintf(path, sizeof(path), "/proc/%d/fd/%d", pid, fd);
    ssize_t n = readlink(path, ret_path, 255);
    ret_path[n > 0 ? n : 0] = '\0';
    snprintf(path, sizeof(path), "/proc/%d/fdinfo/%d", pid, fd);
    int info = open(path, O_RDONLY | O_CLOEXEC);
    if (info >= 0 && read(info, line, sizeof(line) - 1) > 0)
        sscanf(line, "pos: %lld flags: %o", &at, (unsigned *)ret_flags);
    close(info);
    return (off_t)at;
}

static void is_open(pid_t pid, int fd, const char *dir, const char *name, off_t offset, int flags)
{
    char want[128], path[256];
    int have = 0;

    snprintf(want, sizeof(want), "%s/%s", dir, name);
    EXPECT(offset_of(pid, fd, path, &have) == offset);
    EXPECT_STR(path, want);
    EXPECT((have & (O_ACCMODE | O_APPEND | O_CLOEXEC)) == flags);
}

/* As in the kernel's own sandbox, when that has got another root. */
TEST(files_are_opened_again_under_their_numbers)
{
    struct places p = {"/tmp/sg-calls-XXXXXX", "/tmp/sg-calls-XXXXXX"};
    struct sg_error e = {0};
    struct open_files l = {.free_fd = 6};
    struct remote_calls v;
    char path[128];

    EXPECT(mkdtemp(p.old) && mkdtemp(p.new));
    write_file(p.old, "a", "old a");
    write_file(p.old, "b", "old b");
    write_file(p.new, "a", "new a");
    write_file(p.new, "b", "new b");
    struct twin t = twin_start(open_files, &p, &e);
    is_open(t.k, 4, p.old, "a", 3, O_RDWR | O_CLOEXEC);

    l.cwd = strdup(p.new);
    snprintf(path, sizeof(path), "%s/a", p.new);
    open_files_add(
        &l,
        &(struct open_file){
            .fd = 4, .same = -1, .flags = O_RDWR | O_CLOEXEC, .offset = 3, .path = strdup(path)});
    snprintf(path, sizeof(path), "%s/b", p.new);
    open_files_add(&l, &(struct open_file){.fd = 5,
                                           .same = -1,
                                           .flags = O_WRONLY | O_APPEND | O_CREAT | O_EXCL,
                                           .path = strdup(path)});
    open_files_add(&l, &(struct open_file){.fd = 9, .same = 4, .flags = O_RDWR});
    remote_calls_init(&v);
    open_files_calls_own(&l, &v);
    EXPECT(remote_calls_make(t.k, &v, &e) == 0);
    EXPECT_STR(e.message, "");
    is_open(t.k, 4, p.new, "a", 3, O_RDWR | O_CLOEXEC);
    is_open(t.k, 5, p.new, "b", 0, O_WRONLY | O_APPEND);
    is_open(t.k, 9, p.new, "a", 3, O_RDWR);
    snprintf(path, sizeof(path), "/proc/%d/fd/6", t.k);
    EXPECT(access(path, F_OK) < 0); /* nothing is left over */
    twin_go(&t);
    EXPECT(twin_answers(&t));
    twin_end(&t);
    remote_calls_done(&v);
    open_files_done(&l);
    remove_all(p.old);
    remove_all(p.new);
}

TEST(a_file_that_is_gone_stays_what_it_was)
{
    struct places p = {"/tmp/sg-calls-XXXXXX", ""};
    struct sg_error e = {0};
    struct open_files l = {.free_fd = 6};
    struct remote_calls v;

    EXPECT(mkdtemp(p.old));
    write_file(p.old, "a", "old a");
    write_file(p.old, "b", "old b");
    struct twin t = twin_start(open_files, &p, &e);
    open_files_add(&l,
                   &(struct open_file){
                       .fd = 5, .same = -1, .flags = O_WRONLY, .path = strdup("/tmp/sg-no/such")});
    remote_calls_init(&v);
    open_files_calls_own(&l, &v);
    EXPECT(remote_calls_make(t.k, &v, &e) == -ENOENT);
    is_open(t.k, 4, p.old, "a", 3, O_RDWR | O_CLOEXEC);
    twin_go(&t);
    EXPECT(twin_answers(&t));
    twin_end(&t);
    remote_calls_done(&v);
    open_files_done(&l);
    remove_all(p.old);
}

#else

TEST(there_is_nothing_to_test_for_this_processor)
{
    EXPECT(!CPU_KNOWN);
}

#endif

TAP_MAIN
