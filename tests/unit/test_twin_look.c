/* What is in the way of a copy, and what is not; and the report of it, whatever names are in it.
 * Needs root: each process that is looked at has a root directory of its own. */
#include <fcntl.h>
#include <jansson.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "lib/base/fd.h"
#include "lib/base/sys.h"
#include "tap.h"
#include "inside/broker/look.h"
#include "inside/broker/twin.h"

/* ---- reports --------------------------------------------------------------------------------- */

static json_t *report_of(struct findings *f, size_t *ret_len)
{
    AUTO(close_p) int fd = -1;
    AUTO(free_p) char *text = NULL;
    struct sg_error e = {0};
    size_t len = 0;
    json_t *j;

    EXPECT(findings_report(f, &fd, &e) == 0);
    lseek(fd, 0, SEEK_SET);
    EXPECT(fd_read_all(fd, TWIN_REPORT_MAX, &text, &len) == 0);
    EXPECT(write(fd, "x", 1) < 0); /* sealed */
    j = json_loadb(text ? text : "", len, 0, NULL);
    EXPECT(j != NULL);
    if (ret_len)
        *ret_len = len;
    return j;
}

TEST(a_report_bears_every_name)
{
    static const char name[] = "/a \"quote\", a \\, a\nline, \t, \x01, \xff\xfe, \xc3(, \xf0\x9f";
    struct findings f;
    json_t *j, *one;

    findings_init(&f);
    findings_kernel_begin(&f);
    findings_file(&f, 4, name, 1ll << 40);
    findings_dropped(&f, 5, name);
    findings_kernel_end(&f, 2);
    findings_in_the_way(&f, &(struct inspected){.dir = -1, .inside = 7}, "file", name, "close it");
    j = report_of(&f, NULL);
    one = json_array_get(json_object_get(j, "inTheWay"), 0);
    EXPECT(json_integer_value(json_object_get(one, "pid")) == 7);
    EXPECT_STR(json_string_value(json_object_get(one, "what")), "file");
    EXPECT(strstr(json_string_value(json_object_get(one, "holds")), "\"quote\"") != NULL);
    one = json_array_get(json_object_get(j, "kernels"), 0);
    one = json_array_get(json_object_get(one, "files"), 0);
    EXPECT(json_integer_value(json_object_get(one, "offset")) == 1ll << 40);
    json_decref(j);
    findings_done(&f);
}

TEST(a_report_has_an_end_and_says_what_it_left_out)
{
    char name[PROCFS_PATH_MAX];
    struct findings f;
    size_t len = 0;
    json_t *j;

    memset(name, '\n', sizeof(name));
    name[sizeof(name) - 1] = '\0';
    findings_init(&f);
    for (int k = 0; k < 20; k++) {
        findings_kernel_begin(&f);
        for (int i = 0; i < 600; i++) {
            findings_file(&f, i, name, i);
            findings_dropped(&f, i, name);
        }
        findings_kernel_end(&f, k);
    }
    for (int i = 0; i < 2000; i++)
        findings_in_the_way(&f, &(struct inspected){.dir = -1, .inside = i}, "file", name, "r");
    EXPECT(f.n_in_the_way == 2000);
    j = report_of(&f, &len);
    EXPECT(len <= TWIN_REPORT_MAX);
    EXPECT(json_array_size(json_object_get(j, "inTheWay")) > 0);
    EXPECT(json_integer_value(json_object_get(j, "more")) > 10000);
    json_decref(j);
    findings_done(&f);
}

/* ---- looking --------------------------------------------------------------------------------- */

/* A tmpfs in a mount namespace of its own, as a sandbox has it. */
static void enter_root(void)
{
    if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
        mount("test", "/tmp", "tmpfs", 0, "mode=0755") < 0 || chdir("/tmp") < 0 ||
        sys_pivot_root(".", ".") < 0 || umount2(".", MNT_DETACH) < 0 || chdir("/") < 0)
        _exit(1);
}

struct seen {
    struct findings f;
    struct open_files open_files;
    struct look_shared shared;
    char *cwd;
    json_t *report;
};

/* The process does `what` in the root, and is looked at while it stands still. */
static struct seen look(void (*what)(void), bool as_kernel)
{
    struct seen s = {.cwd = NULL};
    struct view view;
    struct inspected who = {.dir = -1};
    int p[2], fd;
    char c;

    EXPECT(pipe2(p, O_CLOEXEC) == 0);
    who.pid = fork();
    if (who.pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        int out = dup3(p[1], 100, O_CLOEXEC);
        sys_close_range(4, 99, 0);
        sys_close_range(101, ~0U, 0);
        enter_root();
        raise(SIGSTOP);
        what();
        if (write(out, "r", 1) == 1)
            close(out);
        for (;;)
            pause();
    }
    close(p[1]);
    EXPECT(waitpid(who.pid, NULL, WUNTRACED) == who.pid);
    EXPECT(procfs_open(who.pid, &who.dir) == 0);
    fd = openat(who.dir, "root", O_PATH | O_DIRECTORY | O_CLOEXEC);
    kill(who.pid, SIGCONT);
    EXPECT(read(p[0], &c, 1) == 1 && read(p[0], &c, 1) == 0);
    close(p[0]);
    who.inside = who.pid;
    findings_init(&s.f);
    EXPECT(view_learn(fd, &view) == 0);
    EXPECT(procfs_status(who.dir, &who.status) == 0);
    EXPECT((as_kernel ? look_at_kernel(&view, &who, &s.f, &s.open_files, &s.shared)
                      : look_at_other(&view, &who, &s.f, &s.cwd)) == 0);
    s.report = report_of(&s.f, NULL);
    kill(who.pid, SIGKILL);
    waitpid(who.pid, NULL, 0);
    close(who.dir);
    close(fd);
    return s;
}

static void seen_done(struct seen *s)
{
    findings_done(&s->f);
    open_files_done(&s->open_files);
    free(s->cwd);
    json_decref(s->report);
}

static const char *field(const struct seen *s, const char *name)
{
    const json_t *one = json_array_get(json_object_get(s->report, "inTheWay"), 0);
    const char *text = json_string_value(json_object_get(one, name));

    return text ? text : "";
}

static void is_in_the_way(void (*what)(void), bool as_kernel, const char *kind, const char *holds)
{
    struct seen s = look(what, as_kernel);

    EXPECT(s.f.n_in_the_way == 1);
    EXPECT_STR(field(&s, "what"), kind);
    if (holds)
        EXPECT_STR(field(&s, "holds"), holds);
    EXPECT(field(&s, "remedy")[0] != '\0');
    seen_done(&s);
}

static void nothing(void)
{
}

static void write_a_file(void)
{
    open("/\"odd\"\n\xff", O_WRONLY | O_CREAT | O_TRUNC, 0644);
}

static void read_a_file(void)
{
    close(open("/r", O_WRONLY | O_CREAT | O_TRUNC, 0644));
    open("/r", O_RDONLY);
}

static void open_a_directory(void)
{
    mkdir("/d", 0755);
    open("/d", O_RDONLY | O_DIRECTORY);
}

static void map_a_file(void)
{
    int fd = open("/m", O_RDWR | O_CREAT | O_TRUNC, 0644);

    if (ftruncate(fd, 4096) == 0)
        mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
}

static void map_for_reading(void)
{
    int fd = open("/m2", O_RDWR | O_CREAT | O_TRUNC, 0644), ro;

    if (ftruncate(fd, 4096) < 0)
        return;
    ro = open("/m2", O_RDONLY);
    mmap(NULL, 4096, PROT_READ, MAP_SHARED, ro, 0);
    close(fd);
    close(ro);
}

static void map_for_later(void)
{
    int fd = open("/m3", O_RDWR | O_CREAT | O_TRUNC, 0644);

    if (ftruncate(fd, 4096) == 0)
        mmap(NULL, 4096, PROT_READ, MAP_SHARED, fd, 0);
    close(fd);
}

static void share_memory(void)
{
    mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
}

static void share_much(void)
{
    mmap(NULL, 257u << 20, PROT_READ, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
}

/* Whoever has the descriptor writes into what the other maps and has not touched. */
static void map_memory_of(int flags)
{
    int fd = memfd_create("m", 0), ro;
    char name[32];

    snprintf(name, sizeof(name), "/proc/self/fd/%d", fd);
    ro = open(name, O_RDONLY);
    if (ftruncate(fd, 4096) < 0 ||
        mmap(NULL, 4096, PROT_READ, flags, ro < 0 ? fd : ro, 0) == MAP_FAILED)
        _exit(1);
    close(fd);
    close(ro);
}

static void map_memory_privately(void)
{
    map_memory_of(MAP_PRIVATE);
}

static void map_memory_for_reading(void)
{
    map_memory_of(MAP_SHARED);
}

static void attach_memory(void)
{
    int id = shmget(IPC_PRIVATE, 4096, 0600);

    if (id < 0 || shmat(id, NULL, SHM_RDONLY) == MAP_FAILED)
        _exit(1);
    shmctl(id, IPC_RMID, NULL);
}

static void lock_a_file(void)
{
    close(open("/l", O_WRONLY | O_CREAT, 0644));
    flock(open("/l", O_RDONLY), LOCK_SH);
}

static void delete_a_file(void)
{
    open("/gone", O_RDWR | O_CREAT, 0644);
    unlink("/gone");
}

static void delete_what_is_read(void)
{
    close(open("/gone", O_RDWR | O_CREAT, 0644));
    open("/gone", O_RDONLY);
    unlink("/gone");
}

static void replace_a_file(void)
{
    open("/old", O_RDWR | O_CREAT, 0644);
    rename("/old", "/older");
    unlink("/older");
    close(open("/old", O_RDWR | O_CREAT, 0644));
}

static void delete_its_directory(void)
{
    if (mkdir("/cwd", 0755) == 0 && chdir("/cwd") == 0)
        rmdir("/cwd");
}

static void have_another_root(void)
{
    if (mkdir("/jail", 0755) == 0 && chroot("/jail") == 0 && chdir("/") == 0)
        return;
    _exit(1);
}

static void have_all_sorts(void)
{
    int p[2], fd;

    fd = open("/one", O_RDWR | O_CREAT | O_TRUNC, 0644); /* 4 */
    if (write(fd, "0123456789", 10) != 10 || lseek(fd, 3, SEEK_SET) != 3)
        _exit(1);
    if (dup(fd) != 5 || dup2(0, 6) != 6)
        _exit(1);
    socketpair(AF_UNIX, SOCK_STREAM, 0, p); /* 7, 8 */
    if (pipe(p) < 0)                        /* 9, 10 */
        _exit(1);
    open("/one", O_RDONLY); /* 11: another opening */
    mkdir("/two", 0755);
    if (chdir("/two") < 0)
        _exit(1);
    umask(0);
}

static void open_too_many(void)
{
    for (int i = 0; i < 700; i++)
        open("/one", O_RDONLY | O_CREAT, 0644);
}

TEST(who_only_reads_is_not_in_the_way)
{
    struct seen s = look(read_a_file, false);

    EXPECT(s.f.n_in_the_way == 0);
    EXPECT_STR(s.cwd ? s.cwd : "none", "/");
    seen_done(&s);
    s = look(nothing, false);
    EXPECT(s.f.n_in_the_way == 0);
    seen_done(&s);
}

TEST(others_that_could_write_are)
{
    is_in_the_way(write_a_file, false, "file", NULL);
    is_in_the_way(open_a_directory, false, "file", "/d");
    is_in_the_way(map_a_file, false, "mapping", "/m");
    is_in_the_way(map_for_later, false, "mapping", "/m3");
    is_in_the_way(lock_a_file, false, "lock", "/l");
    is_in_the_way(delete_what_is_read, false, "file", "/gone (deleted)");
    is_in_the_way(have_another_root, false, "process", NULL);
}

TEST(memory_that_others_share_is_theirs)
{
    struct seen s = look(share_much, false);

    EXPECT(s.f.n_in_the_way == 0);
    seen_done(&s);
    s = look(map_for_reading, false);
    EXPECT(s.f.n_in_the_way == 0);
    seen_done(&s);
    s = look(map_memory_privately, false);
    EXPECT(s.f.n_in_the_way == 0);
    seen_done(&s);
}

TEST(what_a_kernel_cannot_take_along)
{
    is_in_the_way(map_a_file, true, "mapping", "/m");
    is_in_the_way(map_for_later, true, "mapping", "/m3");
    is_in_the_way(map_memory_privately, true, "mapping", "/memfd:m (deleted)");
    is_in_the_way(map_memory_for_reading, true, "mapping", NULL);
    is_in_the_way(attach_memory, true, "mapping", NULL);
    is_in_the_way(share_much, true, "memory", NULL);
    is_in_the_way(lock_a_file, true, "lock", "/l");
    is_in_the_way(delete_a_file, true, "file", "/gone (deleted)");
    is_in_the_way(delete_what_is_read, true, "file", "/gone (deleted)");
    is_in_the_way(replace_a_file, true, "file", NULL);
    is_in_the_way(delete_its_directory, true, "file", NULL);
    is_in_the_way(open_too_many, true, "file", "/one");
}

TEST(what_a_kernel_takes_along)
{
    struct seen s = look(have_all_sorts, true);
    const json_t *k = json_array_get(json_object_get(s.report, "kernels"), 0);

    EXPECT(s.f.n_in_the_way == 0);
    EXPECT_STR(s.open_files.cwd ? s.open_files.cwd : "none", "/two");
    EXPECT(s.open_files.n == 4);
    if (s.open_files.n != 4)
        return;
    const struct open_file *i = s.open_files.items;
    EXPECT(i[0].fd == 4 && i[0].same == -1 && i[0].offset == 3);
    EXPECT((i[0].flags & O_ACCMODE) == O_RDWR);
    EXPECT_STR(i[0].path, "/one");
    EXPECT(i[1].fd == 5 && i[1].same == 4);
    EXPECT(i[2].fd == 6 && i[2].same == 0);
    EXPECT(i[3].fd == 11 && i[3].same == -1 && i[3].offset == 0);
    EXPECT(s.open_files.free_fd == 12);
    EXPECT(json_array_size(json_object_get(k, "files")) == 2);
    EXPECT(json_array_size(json_object_get(k, "dropped")) == 4);
    seen_done(&s);
    s = look(share_memory, true);
    EXPECT(s.f.n_in_the_way == 0 && s.shared.n == 1 && s.shared.bytes == 8192);
    seen_done(&s);
    s = look(map_for_reading, true);
    EXPECT(s.f.n_in_the_way == 0 && s.shared.n == 0);
    seen_done(&s);
}

TAP_MAIN
