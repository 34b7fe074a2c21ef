/* Control groups of this host through the common interface, and what can be tried of v2 beside v1.
 */
#include "tap.h"

#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <time.h>

#include "lib/base/fd.h"
#include "warden/host/cgroup.h"
#include "warden/host/cgroup_place.h"
#include "warden/host/cgroup_wait.h"
#include "warden/host/devices_bpf.h"
#include "warden/host/slots.h"

TAP_MAIN

#define DENIED_NODE "/tmp/sandglass-test-device"

static struct slots slots;
static struct cgroup_place *place;
static struct sg_error e;
static const struct sg_limits limits = {
    .memory_bytes = 64u << 20, .disk_bytes = 1u << 20, .cpus_milli = 500, .pids = 20};

static struct cgroup *make(void)
{
    struct cgroup *cg = NULL;

    EXPECT(slots_take(&slots, 1, &e) == 0);
    EXPECT(cgroup_place_open(CGROUP_LOCAL, CGROUP_RUNS, &place, &e) == 0);
    EXPECT(cgroup_create(place, slots.first, &cg, &e) == 0);
    return cg;
}

static void drop(struct cgroup *cg)
{
    EXPECT(cgroup_destroy(cg, &e) == 0);
    cgroup_place_close(place);
    slots_release(&slots);
}

static void join(struct cgroup *cg)
{
    struct cgroup_doors doors;

    if (cg->ops->open_doors(cg, &doors, &e) < 0)
        _exit(9);
    for (size_t i = 0; i < doors.n; i++)
        if (write(doors.fds[i], "0", 1) != 1)
            _exit(9);
}

static void ms(long n)
{
    nanosleep(&(struct timespec){.tv_sec = n / 1000, .tv_nsec = n % 1000 * 1000000}, NULL);
}

/* Runs fn in a child that is in the group; returns its exit status. */
static int in_group(struct cgroup *cg, int (*fn)(void))
{
    int status = -1;
    pid_t pid = fork();

    if (pid == 0) {
        join(cg);
        _exit(fn());
    }
    waitpid(pid, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static int fork_until_refused(void)
{
    for (int i = 0; i < 64; i++) {
        pid_t pid = fork();
        if (pid < 0)
            return i;
        if (pid == 0)
            _exit((ms(300), 0));
    }
    return 64;
}

TEST(pids_limit_holds_and_is_counted)
{
    struct cgroup *cg = make();
    struct cgroup_stats s = {0};

    EXPECT(cg->ops->set_limits(cg, &limits, &e) == 0);
    /* pids + 1 are allowed in all; the first is the child itself. */
    EXPECT(in_group(cg, fork_until_refused) == 20);
    cgroup_stats(cg, &s);
    EXPECT(s.pids_hits == 1);
    while (!cg->ops->empty(cg))
        ms(20);
    drop(cg);
}

static int eat_memory(void)
{
    char *p = mmap(NULL, 256u << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    for (size_t i = 0; i < 256u << 20; i += 4096)
        p[i] = 1;
    return 0;
}

static struct cgroup *watched;

/* Uses 100 ms of a processor and 8 MiB, and looks at the group while it has them. */
static int use_some(void)
{
    char *p = mmap(NULL, 8u << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    struct cgroup_usage u = {0};

    for (size_t i = 0; i < 8u << 20; i += 4096)
        p[i] = 1;
    while (clock() < CLOCKS_PER_SEC / 10)
        ;
    watched->ops->usage(watched, &u);
    return u.cpu_usec > 50000 && u.cpu_usec < 5000000 && u.memory_bytes >= 8u << 20 &&
                   u.memory_cache <= u.memory_bytes
               ? 0
               : 1;
}

TEST(usage_tells_processor_time_and_memory)
{
    struct cgroup_usage u = {0};

    watched = make();
    EXPECT(watched->ops->account(watched, &e) == 0);
    EXPECT(watched->ops->set_limits(watched, &limits, &e) == 0);
    EXPECT(in_group(watched, use_some) == 0);
    /* The next sandbox in a group that is used again starts from nothing. */
    EXPECT(watched->ops->set_limits(watched, &limits, &e) == 0);
    watched->ops->usage(watched, &u);
    EXPECT(!watched->ops->reusable || u.cpu_usec < 50000);
    drop(watched);
}

TEST(memory_limit_kills_and_is_counted)
{
    struct cgroup *cg = make();
    struct cgroup_stats s = {0};

    EXPECT(cg->ops->set_limits(cg, &limits, &e) == 0);
    EXPECT(in_group(cg, eat_memory) == 128 + SIGKILL);
    cgroup_stats(cg, &s);
    EXPECT(s.oom_kills == 1);
    EXPECT(cgroup_peak(cg) > 32u << 20 && cgroup_peak(cg) <= 64u << 20);
    drop(cg);
}

TEST(limits_can_go_up_and_down)
{
    struct cgroup *cg = make();
    struct sg_limits more = limits;

    EXPECT(cg->ops->set_limits(cg, &limits, &e) == 0);
    more.memory_bytes = 512u << 20;
    EXPECT(cg->ops->set_limits(cg, &more, &e) == 0);
    EXPECT(in_group(cg, eat_memory) == 0);
    EXPECT(cg->ops->set_limits(cg, &limits, &e) == 0);
    EXPECT(in_group(cg, eat_memory) == 128 + SIGKILL);
    drop(cg);
}

TEST(frozen_processes_stand_still_and_can_be_killed)
{
    _Atomic unsigned *count =
        mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    struct cgroup *cg = make();
    pid_t pid = fork();
    int status;

    if (pid == 0) {
        join(cg);
        for (;;) {
            atomic_fetch_add(count, 1);
            ms(1);
        }
    }
    while (atomic_load(count) == 0)
        ms(1);
    EXPECT(cgroup_freeze(cg, true, &e) == 0);
    unsigned then = atomic_load(count);
    ms(50);
    EXPECT(atomic_load(count) == then);
    EXPECT(cgroup_freeze(cg, false, &e) == 0);
    ms(50);
    EXPECT(atomic_load(count) > then);
    EXPECT(cgroup_freeze(cg, true, &e) == 0);
    EXPECT(!cg->ops->empty(cg));
    cg->ops->kill(cg);
    EXPECT(waitpid(pid, &status, 0) == pid && WIFSIGNALED(status));
    EXPECT(cg->ops->empty(cg));
    drop(cg);
}

/* A copy of /dev/kmsg's numbers: reading the node is refused by the rules, whatever its mode. */
static int try_devices(void)
{
    int denied = open(DENIED_NODE, O_RDONLY | O_NONBLOCK), denied_errno = errno;

    if (denied >= 0 || denied_errno != EPERM)
        return 1;
    return open("/dev/null", O_RDWR) >= 0 && open("/dev/urandom", O_RDONLY) >= 0 ? 0 : 2;
}

TEST(devices_are_limited)
{
    struct cgroup *cg = make();

    unlink(DENIED_NODE);
    EXPECT(mknod(DENIED_NODE, S_IFCHR | 0600, makedev(1, 11)) == 0);
    int fd = open(DENIED_NODE, O_RDONLY | O_NONBLOCK);
    EXPECT(fd >= 0); /* outside it works, so the refusal inside is the group's */
    close(fd);
    EXPECT(in_group(cg, try_devices) == 0);
    unlink(DENIED_NODE);
    drop(cg);
}

TEST(a_group_with_processes_is_not_removed)
{
    struct cgroup *cg = make();
    pid_t pid = fork();

    if (pid == 0) {
        join(cg);
        for (;;)
            pause();
    }
    while (cg->ops->empty(cg))
        ms(1);
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
    drop(cg);
}

/* The unified hierarchy may be mounted beside v1 without controllers: devices are BPF, so they work
 * there. */
TEST(the_device_program_of_v2_decides)
{
    struct cgroup_mount m;
    char path[300], procs[320];
    int status;

    EXPECT(cgroup_find_mount(NULL, &m) == 0);
    snprintf(path, sizeof(path), "%s/sandglass-unit-test", m.path);
    snprintf(procs, sizeof(procs), "%s/cgroup.procs", path);
    EXPECT(mkdir(path, 0755) == 0 || errno == EEXIST);
    int dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    EXPECT(devices_bpf_attach(dir, &e) == 0);
    unlink(DENIED_NODE);
    EXPECT(mknod(DENIED_NODE, S_IFCHR | 0600, makedev(1, 11)) == 0);
    pid_t pid = fork();
    if (pid == 0)
        _exit(file_write(AT_FDCWD, procs, "0") == 0 ? try_devices() : 3);
    EXPECT(waitpid(pid, &status, 0) == pid && status == 0);
    unlink(DENIED_NODE);
    close(dir);
    EXPECT(rmdir(path) == 0);
}
