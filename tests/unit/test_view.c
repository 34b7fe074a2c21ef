/* What programs see of limits and use: the texts, and that an open gets the figures of that
 * moment. */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "inside/agent/agent.h"
#include "inside/agent/view.h"
#include "lib/base/clock.h"
#include "lib/base/fd.h"
#include "lib/loop/tasks.h"
#include "tap.h"

#define MIB (1024ull * 1024)

static const char v1_memory[] = "cache 20971520\nrss 31457280\nshmem 10485760\nmapped_file 4096\n"
                                "inactive_anon 1048576\nactive_anon 2097152\n"
                                "inactive_file 4194304\nactive_file 6291456\nunevictable 0\n"
                                "total_cache 99\n";
static const char v2_memory[] = "anon 31457280\nfile 20971520\nfile_mapped 4096\nshmem 10485760\n"
                                "inactive_anon 1048576\nactive_anon 2097152\n"
                                "inactive_file 4194304\nactive_file 6291456\n"
                                "slab_reclaimable 2097152\nslab_unreclaimable 1048576\n";

static const char *text_of(enum view_file which, const struct view_figures *f, const char *cpuinfo)
{
    static struct strbuf out;

    strbuf_done(&out);
    strbuf_init(&out, 1u << 20);
    view_text(which, f, cpuinfo, &out);
    return out.buf;
}

static bool has_line(const char *text, const char *line)
{
    const char *at = strstr(text, line);

    return at && (at == text || at[-1] == '\n') && at[strlen(line)] == '\n';
}

TEST(meminfo_is_that_of_the_group)
{
    const char *const stats[] = {v1_memory, v2_memory};

    for (size_t i = 0; i < ARRAY_SIZE(stats); i++) {
        struct view_figures f = {.memory_max = 512 * MIB, .memory_used = 100 * MIB};
        view_read_memory(&f, stats[i]);
        const char *text = text_of(VIEW_MEMINFO, &f, "");
        EXPECT(has_line(text, "MemTotal:         524288 kB"));
        EXPECT(has_line(text, "MemFree:          421888 kB"));
        EXPECT(
            has_line(text, i == 0 ? "MemAvailable:     432128 kB" : "MemAvailable:     434176 kB"));
        EXPECT(has_line(text, "Cached:            20480 kB"));
        EXPECT(has_line(text, "AnonPages:         30720 kB"));
        EXPECT(has_line(text, "Shmem:             10240 kB"));
        EXPECT(has_line(text, "SwapTotal:             0 kB"));
        EXPECT(has_line(text, "Hugepagesize:       2048 kB"));
    }
}

TEST(figures_stay_in_bounds)
{
    struct view_figures f = {.memory_max = 64 * MIB, .memory_used = 80 * MIB};
    const char *text;

    view_read_memory(&f, "inactive_file 18446744073709551615\n");
    text = text_of(VIEW_MEMINFO, &f, "");
    EXPECT(has_line(text, "MemFree:               0 kB"));
    EXPECT(has_line(text, "MemAvailable:      65536 kB"));
    f = (struct view_figures){.cpus = 2, .user_usec = 5000000, .age_usec = 1000000};
    EXPECT(has_line(text_of(VIEW_STAT, &f, ""), "cpu  500 0 0 0 0 0 0 0 0 0"));
    view_read_memory(&f, "");
    view_read_cpu(&f, "no numbers here\nuser_usec\n");
    EXPECT(f.user_usec == 0);
}

TEST(stat_has_a_line_for_each_processor)
{
    struct view_figures f = {.cpus = 2,
                             .user_usec = 3000000,
                             .system_usec = 1000000,
                             .age_usec = 10000000,
                             .boot = 1700000000};
    const char *text = text_of(VIEW_STAT, &f, "");

    EXPECT(has_line(text, "cpu  300 0 100 1600 0 0 0 0 0 0"));
    EXPECT(has_line(text, "cpu0 150 0 50 800 0 0 0 0 0 0"));
    EXPECT(has_line(text, "cpu1 150 0 50 800 0 0 0 0 0 0"));
    EXPECT(!strstr(text, "cpu2"));
    EXPECT(has_line(text, "btime 1700000000"));
}

TEST(cpuinfo_has_the_first_processors)
{
    static const char host[] = "processor : 0\nmodel : x\n\nprocessor : 1\nmodel : x\n\n"
                               "processor : 2\nmodel : x\n\n";
    struct view_figures f = {.cpus = 2};

    EXPECT_STR(text_of(VIEW_CPUINFO, &f, host),
               "processor : 0\nmodel : x\n\nprocessor : 1\nmodel : x\n\n");
    f.cpus = 64;
    EXPECT_STR(text_of(VIEW_CPUINFO, &f, host), host);
    EXPECT_STR(text_of(VIEW_CPUINFO, &f, ""), "");
}

TEST(processors_and_their_share)
{
    struct view_figures f = {.cpus = 1, .quota_usec = 50000, .period_usec = 100000};

    EXPECT_STR(text_of(VIEW_CPUS, &f, ""), "0\n");
    EXPECT_STR(text_of(VIEW_CPU_MAX, &f, ""), "50000 100000\n");
    view_read_cpu(&f, "usage_usec 30\nuser_usec 20\nsystem_usec 10\nnr_periods 1\n");
    EXPECT(f.user_usec == 20 && f.system_usec == 10);
    f.cpus = 16;
    EXPECT_STR(text_of(VIEW_CPUS, &f, ""), "0-15\n");
}

TEST(load_follows_use)
{
    double load[3] = {0};

    view_load(load, 2, 60000000);
    EXPECT(load[0] > 1.26 && load[0] < 1.27);
    EXPECT(load[1] > 0.36 && load[1] < 0.37);
    for (int i = 0; i < 30; i++)
        view_load(load, 0, 60000000);
    EXPECT(load[0] < 0.001 && load[2] < 0.3);
}

/* ---- leases ---------------------------------------------------------------------------------- */

struct bed {
    struct loop loop;
    struct view view;
    struct view_fds fds;
    struct agent_config config;
    char dir[32];
};

static void bed_make(struct bed *b)
{
    static const struct view_fds none = VIEW_NONE;
    static const struct {
        const char *name, *text;
    } group[] = {
        {"memory.max", "67108864\n"}, {"memory.current", "1048576\n"}, {"memory.stat", v2_memory}};
    sigset_t io;
    char path[64];

    *b = (struct bed){.fds = none, .dir = "/tmp/view-XXXXXX"};
    EXPECT(mkdtemp(b->dir) != NULL);
    for (size_t i = 0; i < ARRAY_SIZE(group); i++) {
        snprintf(path, sizeof(path), "%s/%s", b->dir, group[i].name);
        close(open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0644));
        EXPECT(file_write(AT_FDCWD, path, group[i].text) == 0);
    }
    snprintf(path, sizeof(path), "%s/meminfo", b->dir);
    b->fds.file[VIEW_MEMINFO] = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0444);
    b->fds.groups = b->dir;
    b->config = (struct agent_config){.cpus = 1, .view = &b->fds};
    sigemptyset(&io);
    sigaddset(&io, SIGIO);
    EXPECT(sigprocmask(SIG_BLOCK, &io, NULL) == 0);
    EXPECT(loop_init(&b->loop, LOOP_BATCH_MAX) == 0);
    EXPECT(view_init(&b->view, &b->loop, &b->config) == 0);
}

static off_t size_of(const struct bed *b)
{
    return lseek(b->fds.file[VIEW_MEMINFO], 0, SEEK_END);
}

static void bed_done(struct bed *b)
{
    static const char *const names[] = {"meminfo", "memory.stat", "memory.current", "memory.max"};
    char path[64];

    view_done(&b->view);
    loop_done(&b->loop);
    close_p(&b->fds.file[VIEW_MEMINFO]);
    for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
        snprintf(path, sizeof(path), "%s/%s", b->dir, names[i]);
        EXPECT(unlink(path) == 0);
    }
    EXPECT(rmdir(b->dir) == 0);
}

static bool set_used(const struct bed *b, const char *text)
{
    char path[64];

    snprintf(path, sizeof(path), "%s/memory.current", b->dir);
    return file_write(AT_FDCWD, path, text) == 0;
}

static void on_end(struct loop_source *src UNUSED, uint32_t events UNUSED)
{
}

/* Turns the loop until the child has ended, which is an event too: nothing else may be left to wait
 * for. */
static int turn_until(struct bed *b, pid_t child)
{
    struct loop_source end = {.fd = -1, .fn = on_end};
    int status = -1, fd = (int)syscall(SYS_pidfd_open, child, 0);

    EXPECT(fd >= 0);
    loop_watch(&b->loop, &end, fd, EPOLLIN);
    while (waitpid(child, &status, WNOHANG) == 0)
        EXPECT(loop_turn(&b->loop) == 0);
    loop_unwatch(&b->loop, &end);
    close_p(&fd);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 99;
}

/* In a child: 0 if the file has this line. */
static int read_line(const struct bed *b, const char *line)
{
    AUTO(free_p) char *text = NULL;
    char path[64];

    snprintf(path, sizeof(path), "%s/meminfo", b->dir);
    return file_read(AT_FDCWD, path, 1u << 20, &text, NULL) == 0 && has_line(text, line) ? 0 : 1;
}

static pid_t reader(const struct bed *b, const char *line)
{
    pid_t pid = fork();

    if (pid == 0) {
        int r = read_line(b, line);
        kill(getppid(), SIGIO); /* a turn of the loop, so that the end is seen */
        _exit(r);
    }
    return pid;
}

TEST(an_open_waits_for_the_figures_of_that_time)
{
    struct bed b;

    bed_make(&b);
    EXPECT(size_of(&b) == 0);
    EXPECT(turn_until(&b, reader(&b, "MemFree:           64512 kB")) == 0);
    EXPECT(set_used(&b, "2097152\n"));
    EXPECT(turn_until(&b, reader(&b, "MemTotal:          65536 kB")) == 0);
    while (!b.view.leased[VIEW_MEMINFO])
        EXPECT(loop_turn(&b.loop) == 0);
    EXPECT(size_of(&b) == 0);
    EXPECT(turn_until(&b, reader(&b, "MemFree:           63488 kB")) == 0);
    bed_done(&b);
}

TEST(a_file_that_stays_open_is_kept_fresh)
{
    struct bed b;
    char path[64], text[4096] = "";
    int fd = -1;

    bed_make(&b);
    snprintf(path, sizeof(path), "%s/meminfo", b.dir);
    EXPECT(open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC) < 0 && errno == EAGAIN);
    view_yield();
    fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    EXPECT(fd >= 0 && pread(fd, text, sizeof(text) - 1, 0) > 0);
    EXPECT(has_line(text, "MemFree:           64512 kB"));
    EXPECT(set_used(&b, "3145728\n"));
    for (uint64_t end = clock_ns() + 5000000000ull;
         clock_ns() < end && !has_line(text, "MemFree:           62464 kB");) {
        EXPECT(loop_turn(&b.loop) == 0);
        EXPECT(pread(fd, text, sizeof(text) - 1, 0) > 0);
    }
    EXPECT(has_line(text, "MemFree:           62464 kB"));
    EXPECT(!b.view.leased[VIEW_MEMINFO]);
    close_p(&fd);
    while (!b.view.leased[VIEW_MEMINFO])
        EXPECT(loop_turn(&b.loop) == 0);
    bed_done(&b);
}

TAP_MAIN
