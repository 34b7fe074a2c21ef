#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/mman.h>

#include "lib/base/fd.h"
#include "tap.h"

static size_t open_fds(void)
{
    DIR *d = opendir("/proc/self/fd");
    size_t n = 0;

    while (readdir(d))
        n++;
    closedir(d);
    return n;
}

static int scratch(const char *text)
{
    int fd = memfd_create("scratch", MFD_CLOEXEC);

    if (fd_write_all(fd, text, strlen(text)) < 0)
        abort();
    lseek(fd, 0, SEEK_SET);
    return fd;
}

/* ---- reading and writing --------------------------------------------------------------------- */

TEST(write_all_then_read_all)
{
    AUTO(close_p) int fd = scratch("some text");
    AUTO(free_p) char *text = NULL;
    size_t len = 0;

    EXPECT(fd_read_all(fd, 100, &text, &len) == 0);
    EXPECT_STR(text, "some text");
    EXPECT(len == 9);
}

TEST(read_all_of_nothing)
{
    AUTO(close_p) int fd = scratch("");
    AUTO(free_p) char *text = NULL;
    size_t len = 99;

    EXPECT(fd_read_all(fd, 0, &text, &len) == 0);
    EXPECT_STR(text, "");
    EXPECT(len == 0);
}

TEST(read_all_limit_is_exact)
{
    AUTO(close_p) int fd = scratch("12345678");
    AUTO(free_p) char *text = NULL;
    size_t len = 99;

    EXPECT(fd_read_all(fd, 7, &text, &len) == -EFBIG);
    EXPECT(!text && len == 99);
    lseek(fd, 0, SEEK_SET);
    EXPECT(fd_read_all(fd, 8, &text, &len) == 0);
    EXPECT_STR(text, "12345678");
    EXPECT(len == 8);
}

/* Sizes around the first buffer and its doublings, each with a limit that just does and just does
 * not. */
TEST(read_all_at_buffer_boundaries)
{
    static const size_t sizes[] = {1, 4094, 4095, 4096, 4097, 8191, 8192, 8193, 100000};

    for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
        AUTO(close_p) int fd = memfd_create("scratch", MFD_CLOEXEC);
        AUTO(free_p) char *data = xcalloc(sizes[i], 1), *text = NULL;
        size_t len = 0;

        for (size_t k = 0; k < sizes[i]; k++)
            data[k] = (char)(k * 31 % 251);
        EXPECT(fd_write_all(fd, data, sizes[i]) == 0);
        lseek(fd, 0, SEEK_SET);
        EXPECT(fd_read_all(fd, sizes[i], &text, &len) == 0);
        EXPECT(len == sizes[i] && memcmp(text, data, len) == 0 && text[len] == '\0');
        lseek(fd, 0, SEEK_SET);
        EXPECT(fd_read_all(fd, sizes[i] - 1, &text, &len) == -EFBIG);
    }
}

TEST(read_all_without_limit_and_length)
{
    AUTO(close_p) int fd = scratch("abc");
    AUTO(free_p) char *text = NULL;

    EXPECT(fd_read_all(fd, SIZE_MAX, &text, NULL) == 0);
    EXPECT_STR(text, "abc");
}

TEST(bad_descriptors)
{
    char *text = NULL;

    EXPECT(fd_write_all(-1, "x", 1) == -EBADF);
    EXPECT(fd_write_all(-1, "", 0) == 0);
    EXPECT(fd_read_all(-1, 10, &text, NULL) == -EBADF);
    EXPECT(!text);
    EXPECT(fd_set_nonblock(-1, true) == -EBADF);
}

static void on_alarm(int sig)
{
    (void)sig;
}

static void *slow_reader(void *arg)
{
    int fd = *(int *)arg;
    char buf[3000];
    size_t total = 0;
    ssize_t n;

    usleep(30000); /* the writer fills the pipe, sleeps and is interrupted meanwhile */
    while ((n = read(fd, buf, sizeof(buf))) > 0)
        total += (size_t)n;
    return (void *)total;
}

TEST(write_all_survives_short_writes_and_signals)
{
    struct sigaction sa = {.sa_handler = on_alarm}, old;
    enum { LEN = 1 << 20 };
    AUTO(free_p) char *data = xcalloc(LEN, 1);
    pthread_t reader;
    sigset_t alarms;
    void *total;
    int p[2];

    EXPECT(pipe2(p, O_CLOEXEC) == 0);
    sigaction(SIGALRM, &sa, &old); /* no SA_RESTART */
    sigemptyset(&alarms);
    sigaddset(&alarms, SIGALRM);
    pthread_sigmask(SIG_BLOCK, &alarms, NULL); /* the reader inherits this */
    pthread_create(&reader, NULL, slow_reader, &p[0]);
    pthread_sigmask(SIG_UNBLOCK, &alarms, NULL);
    ualarm(5000, 2000);
    EXPECT(fd_write_all(p[1], data, LEN) == 0);
    ualarm(0, 0);
    close(p[1]);
    pthread_join(reader, &total);
    EXPECT((size_t)total == LEN);
    sigaction(SIGALRM, &old, NULL);
    close(p[0]);
}

TEST(nonblock_on_and_off)
{
    char *text = NULL;
    int p[2];

    EXPECT(pipe2(p, O_CLOEXEC) == 0);
    EXPECT(fd_set_nonblock(p[0], true) == 0);
    EXPECT(fcntl(p[0], F_GETFL) & O_NONBLOCK);
    EXPECT(fd_read_all(p[0], 10, &text, NULL) == -EAGAIN);
    EXPECT(fd_set_nonblock(p[0], false) == 0);
    EXPECT(!(fcntl(p[0], F_GETFL) & O_NONBLOCK));
    close(p[0]);
    close(p[1]);
}

TEST(file_read_relative_to_a_directory)
{
    AUTO(close_p) int proc = open("/proc/self", O_PATH | O_DIRECTORY | O_CLOEXEC);
    AUTO(free_p) char *text = NULL;
    size_t before = open_fds(), len = 0;

    EXPECT(file_read(proc, "comm", 64, &text, &len) == 0);
    EXPECT(len > 1 && text[len - 1] == '\n');
    EXPECT(file_read(proc, "comm", 1, &text, &len) == -EFBIG);
    EXPECT(file_read(proc, "no-such-file", 64, &text, &len) == -ENOENT);
    EXPECT(file_read(AT_FDCWD, "/proc", 64, &text, &len) == -EISDIR);
    EXPECT(open_fds() == before);
}

TEST(file_write_to_a_control_file)
{
    AUTO(free_p) char *old = NULL, *text = NULL;

    EXPECT(file_read(AT_FDCWD, "/proc/self/comm", 64, &old, NULL) == 0);
    EXPECT(file_write(AT_FDCWD, "/proc/self/comm", "renamed") == 0);
    EXPECT(file_read(AT_FDCWD, "/proc/self/comm", 64, &text, NULL) == 0);
    EXPECT_STR(text, "renamed\n");
    EXPECT(file_write(AT_FDCWD, "/proc/self/comm", old) == 0);
}

TEST(file_write_creates_nothing)
{
    char path[] = "/tmp/test_fd.XXXXXX";
    AUTO(close_p) int fd = mkstemp(path);
    size_t before = open_fds();

    EXPECT(fd >= 0);
    EXPECT(file_write(AT_FDCWD, path, "abcdef") == 0);
    EXPECT(file_write(AT_FDCWD, path, "xy") == 0);
    AUTO(free_p) char *text = NULL;
    EXPECT(file_read(AT_FDCWD, path, 64, &text, NULL) == 0);
    EXPECT_STR(text, "xycdef"); /* one write(2) at the start, no truncation */
    unlink(path);
    EXPECT(file_write(AT_FDCWD, path, "again") == -ENOENT);
    EXPECT(access(path, F_OK) < 0);
    EXPECT(file_write(AT_FDCWD, "/proc/self/oom_score_adj", "not a number") == -EINVAL);
    EXPECT(open_fds() == before);
}

TEST(only_a_memfd_that_is_small_enough_passes)
{
    AUTO(close_p) int memfd = memfd_create("m", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    AUTO(close_p) int event = eventfd(0, EFD_CLOEXEC), null = open("/dev/null", O_RDONLY);
    int p[2];

    EXPECT(pipe(p) == 0);
    EXPECT(fd_check_memfd(memfd, 0) == 0);
    EXPECT(ftruncate(memfd, 10) == 0);
    EXPECT(fd_check_memfd(memfd, 10) == 0 && fd_check_memfd(memfd, 9) == -EFBIG);
    EXPECT(fd_check_memfd(event, 10) == -EBADF && fd_check_memfd(null, 10) == -EBADF);
    EXPECT(fd_check_memfd(p[0], 10) == -EBADF && fd_check_memfd(-1, 10) == -EBADF);
    close(p[0]);
    close(p[1]);
}

TAP_MAIN
