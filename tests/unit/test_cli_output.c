/* What `sandglass run` writes: live output with slow and vanished readers, the JSON result, remarks
 * on limits; and that the caller's terminal comes back as it was. */
#include "tap.h"

#include <fcntl.h>
#include <pty.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/base/clock.h"
#include "lib/base/fd.h"
#include "cli/local/live_output.h"
#include "cli/local/report.h"
#include "lib/command/terminal.h"

TAP_MAIN

#define FLOOD (256u * 1024) /* more than a pipe holds */

/* Standard output is a pipe for the length of a test. */
static int saved_stdout, reader, signals;

static void redirect(void)
{
    sigset_t set;
    int p[2];

    fflush(stdout);
    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    sigprocmask(SIG_BLOCK, &set, NULL);
    signal(SIGPIPE, SIG_IGN);
    signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    saved_stdout = dup(STDOUT_FILENO);
    if (signals < 0 || saved_stdout < 0 || pipe(p) < 0)
        abort();
    dup2(p[1], STDOUT_FILENO);
    close(p[1]);
    reader = p[0];
}

/* Takes the signal that a broken pipe raises, if there was one. */
static bool restore(void)
{
    struct signalfd_siginfo info;

    dup2(saved_stdout, STDOUT_FILENO);
    close(saved_stdout);
    bool signalled = read(signals, &info, sizeof(info)) == sizeof(info);
    close(signals);
    return signalled;
}

TEST(output_passes_through_at_once)
{
    struct live_output out;
    char buf[16] = {0};

    redirect();
    live_output_init(&out, signals, 10000);
    live_output_write(&out, SG_STDOUT, "hello", 5);
    ssize_t n = read(reader, buf, sizeof(buf));
    live_output_done(&out);
    close(reader);
    EXPECT(!restore());
    EXPECT(n == 5);
    EXPECT_STR(buf, "hello");
}

/* Reads everything in a child after a pause and exits with 0 if it was FLOOD bytes in order. */
static pid_t slow_reader(unsigned pause_ms)
{
    pid_t pid = fork();

    if (pid != 0)
        return pid;
    size_t total = 0;
    char buf[4096];
    ssize_t n;

    close(STDOUT_FILENO);
    usleep(pause_ms * 1000);
    while ((n = read(reader, buf, sizeof(buf))) > 0)
        for (ssize_t i = 0; i < n; i++, total++)
            if (buf[i] != (char)('a' + total % 26))
                _exit(1);
    _exit(total == FLOOD ? 0 : 2);
}

static char *flood(void)
{
    char *data = xcalloc(1, FLOOD);

    for (size_t i = 0; i < FLOOD; i++)
        data[i] = (char)('a' + i % 26);
    return data;
}

TEST(a_slow_reader_delays_neither_the_deadline_nor_loses_output)
{
    AUTO(free_p) char *data = flood();
    struct live_output out;
    int status = -1;

    redirect();
    pid_t pid = slow_reader(600);
    close(reader);
    uint64_t start = clock_ns();
    live_output_init(&out, signals, 100);
    live_output_write(&out, SG_STDOUT, data, FLOOD);
    uint64_t took_ms = (clock_ns() - start) / 1000000;
    live_output_done(&out);
    EXPECT(!restore());
    waitpid(pid, &status, 0);
    EXPECT(took_ms >= 90 && took_ms < 500);
    EXPECT(status == 0);
}

TEST(a_signal_ends_the_wait_for_a_reader)
{
    AUTO(free_p) char *data = flood();
    struct live_output out;

    redirect();
    live_output_init(&out, signals, 60000);
    raise(SIGTERM);
    live_output_write(&out, SG_STDOUT, data, FLOOD);
    live_output_done(&out);
    close(reader);
    EXPECT(restore());
    EXPECT(!out.gone);
}

TEST(a_vanished_reader_ends_the_run)
{
    struct live_output out;

    redirect();
    close(reader);
    live_output_init(&out, signals, 60000);
    live_output_write(&out, SG_STDOUT, "x", 1);
    live_output_write(&out, SG_STDOUT, "y", 1);
    live_output_done(&out);
    EXPECT(restore());
    EXPECT(out.gone && out.error == EPIPE);
}

/* ---- results --------------------------------------------------------------------------------- */

TEST(json_result)
{
    char text[] = "a\xff\"\n";
    struct sg_result r = {.stdout_data = text,
                          .stdout_len = 4,
                          .exit_code = 137,
                          .signal = SIGKILL,
                          .duration_us = 12345,
                          .status = SG_STATUS_EXECUTION_ERROR,
                          .limit = SG_LIMIT_MEMORY,
                          .error_message = "out of memory",
                          .usage = {.cpu_user_us = 1500, .memory_peak_bytes = 64u << 20},
                          .limits_applied = {.memory_bytes = 64u << 20, .cpus_milli = 500},
                          .timeout_ms = 30000,
                          .output_limit = 1024};
    AUTO(strbuf_done) struct strbuf results = {0};
    struct strbuf out;

    strbuf_init(&results, 65536);
    strbuf_addstr(&results, "{\"main\":true,\"text\":\"2\"}\n{\"main\":false}\n");
    strbuf_init(&out, 65536);
    report_json(&out, &r, &results);
    EXPECT_STR(out.buf, "{\"stdout\":\"a\xef\xbf\xbd\\\"\\n\",\"stderr\":\"\","
                        "\"results\":[{\"main\":true,\"text\":\"2\"},{\"main\":false}],"
                        "\"exit_code\":137,"
                        "\"duration_ms\":12.345,\"status\":\"execution_error\","
                        "\"error_message\":\"out of memory\",\"limit\":\"memory\","
                        "\"resource_usage\":{\"cpu_user_ms\":1.500,\"cpu_system_ms\":0.000,"
                        "\"memory_peak_bytes\":67108864,\"disk_bytes\":0,\"stdout_bytes\":0,"
                        "\"stderr_bytes\":0},\"limits_applied\":{\"timeout_ms\":30000,"
                        "\"memory_bytes\":67108864,\"cpus\":0.500,\"pids\":0,\"disk_bytes\":0,"
                        "\"disk_inodes\":0,\"output_bytes\":1024}}\n");
    strbuf_done(&out);
}

TEST(json_of_a_setup_error)
{
    struct sg_error e = {SG_ERR_DENIED, -EPERM, "needs root"};
    struct strbuf out;

    strbuf_init(&out, 65536);
    report_setup_json(&out, &e, 1000);
    EXPECT_STR(out.buf, "{\"stdout\":\"\",\"stderr\":\"\",\"results\":[],\"exit_code\":125,"
                        "\"duration_ms\":1.000,"
                        "\"status\":\"setup_error\",\"error_message\":\"needs root\","
                        "\"limit\":null,\"resource_usage\":null,\"limits_applied\":null}\n");
    strbuf_done(&out);
}

TEST(remarks)
{
    struct sg_result r = {.limits_applied = {.memory_bytes = 64u << 20, .pids = 16},
                          .timeout_ms = 500,
                          .output_limit = 1u << 20};
    char line[256];

    EXPECT(!report_line(line, sizeof(line), &r));
    r.limit = SG_LIMIT_MEMORY;
    r.signal = SIGKILL;
    EXPECT(report_line(line, sizeof(line), &r));
    EXPECT_STR(line, "memory limit of 64 MiB reached: the program was killed; "
                     "raise it with --memory");
    r.signal = 0;
    EXPECT(report_line(line, sizeof(line), &r));
    EXPECT(strstr(line, "a process was killed") != NULL);
    r.limit = SG_LIMIT_TIME;
    EXPECT(report_line(line, sizeof(line), &r) && strstr(line, "500 ms") &&
           strstr(line, "--timeout"));
    r.limit = SG_LIMIT_PIDS;
    EXPECT(report_line(line, sizeof(line), &r) && strstr(line, "16 processes") &&
           strstr(line, "--pids"));
    r.limit = SG_LIMIT_OUTPUT;
    EXPECT(report_line(line, sizeof(line), &r) && strstr(line, "1 MiB") &&
           strstr(line, "--output-limit"));
    r.limit = SG_LIMIT_NONE;
    r.signal = SIGSEGV;
    EXPECT(report_line(line, sizeof(line), &r) && strstr(line, "signal 11"));
}

/* ---- the terminal ---------------------------------------------------------------------------- */

TEST(terminal_comes_back_as_it_was)
{
    struct terminal t = {.fd = -1};
    struct termios before, raw, after;
    int master, slave;

    EXPECT(openpty(&master, &slave, NULL, NULL, NULL) == 0);
    EXPECT(tcgetattr(slave, &before) == 0);
    EXPECT((before.c_lflag & (ICANON | ISIG | ECHO)) == (ICANON | ISIG | ECHO));
    terminal_raw(&t, slave);
    EXPECT(tcgetattr(slave, &raw) == 0);
    EXPECT((raw.c_lflag & (ICANON | ISIG | ECHO)) == 0);
    terminal_restore(&t);
    terminal_restore(&t);
    EXPECT(tcgetattr(slave, &after) == 0);
    EXPECT(after.c_lflag == before.c_lflag && after.c_iflag == before.c_iflag &&
           after.c_oflag == before.c_oflag);
    close(master);
    close(slave);
}

TEST(no_terminal_is_left_alone)
{
    struct terminal t = {.fd = -1};
    int fd = open("/dev/null", O_RDWR | O_CLOEXEC);

    terminal_raw(&t, fd);
    EXPECT(t.fd == -1);
    terminal_restore(&t);
    close(fd);
}
