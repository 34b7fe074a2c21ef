/* The tar that a directory becomes, read by GNU tar: what is in it, and that nothing is followed.
 */
#include "tap.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>

#include "cli/shared/acp_tar.h"

TAP_MAIN

static char top[64];
static struct acp_tar_count count;
static struct sg_error e;

static void sh(const char *command)
{
    pid_t pid = fork();
    int status = -1;

    if (pid == 0) {
        execl("/bin/bash", "bash", "-c", command, (char *)NULL);
        _exit(127);
    }
    EXPECT(waitpid(pid, &status, 0) == pid && status == 0);
}

static void begin(void)
{
    snprintf(top, sizeof(top), "/tmp/sandglass-tar.XXXXXX");
    EXPECT(mkdtemp(top) != NULL);
    EXPECT(chdir(top) == 0);
    sh("mkdir in out");
}

static void end(void)
{
    EXPECT(chdir("/") == 0);
    char command[128];
    snprintf(command, sizeof(command), "rm -rf %s", top);
    sh(command);
}

/* From in/ to tar.tar. */
static int write_tar(void)
{
    AUTO(close_p) int dir = open("in", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    AUTO(close_p) int out = open("tar.tar", O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

    e = (struct sg_error){0};
    count = (struct acp_tar_count){0};
    return acp_tar_write(dir, "in", out, &count, &e);
}

TEST(what_is_in_it)
{
    begin();
    sh("mkdir -p in/dir/empty; echo content >in/dir/file; touch -d @1000000000 in/dir/file; "
       "chmod 640 in/dir/file; head -c 100000 /dev/urandom >in/large; : >in/none; chmod 755 "
       "in/none; "
       "printf 'x%.0s' $(seq 512) >in/block; ln -s nowhere/at/all in/link; "
       "touch 'in/ odd \"name\"' in/$(printf '\\377'); chmod 1770 in/dir");
    EXPECT(write_tar() == 0);
    EXPECT(count.files == 6 && count.bytes == 8 + 100000 + 512 && count.left_out == 0);
    sh("tar -C out -xpf tar.tar");
    sh("diff -r --no-dereference in out");
    sh("[ $(stat -c %a out/dir) = 1770 ] && [ $(stat -c %a out/none) = 755 ]");
    sh("[ $(stat -c '%a %Y' out/dir/file | tr ' ' _) = 640_1000000000 ]");
    end();
}

TEST(long_names)
{
    begin();
    for (int len = 95; len <= 105; len++) {
        char path[512];
        snprintf(path, sizeof(path), "in/%0*d", len, 1);
        EXPECT(mkdir(path, 0755) == 0);
        snprintf(path, sizeof(path), "in/%0*d/%0*d", len, 1, len, 2);
        EXPECT(symlink(path + 3, path) == 0);
        snprintf(path, sizeof(path), "in/%0*d/%0255d", len, 1, 3);
        AUTO(close_p) int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
        EXPECT(fd >= 0);
    }
    EXPECT(write_tar() == 0);
    sh("tar -C out -xf tar.tar && diff -r --no-dereference in out");
    end();
}

/* Sockets and pipes are no files; a link that leads out is a link. */
TEST(what_is_left_out)
{
    struct sockaddr_un a = {.sun_family = AF_UNIX, .sun_path = "in/a/socket"};
    AUTO(close_p) int sock = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    begin();
    sh("mkdir in/a; mkfifo in/a/pipe; ln -s /etc in/etc; ln -s .. in/up");
    EXPECT(bind(sock, (struct sockaddr *)&a, sizeof(a)) == 0);
    EXPECT(write_tar() == 0);
    EXPECT(count.left_out == 2 && count.files == 0);
    EXPECT(strncmp(count.first_left_out, "a/", 2) == 0);
    sh("[ \"$(tar -tf tar.tar | sort | tr '\\n' ' ')\" = 'a/ etc up ' ]");
    end();
}

TEST(an_empty_directory)
{
    begin();
    EXPECT(write_tar() == 0);
    sh("[ \"$(tar -tf tar.tar)\" = '' ] && [ $(stat -c %s tar.tar) = 1024 ]");
    end();
}

TEST(not_without_end)
{
    begin();
    sh("d=in; for i in $(seq 130); do d=$d/d; done; mkdir -p $d");
    EXPECT(write_tar() == -E2BIG);
    EXPECT(strstr(e.message, "deep") != NULL);
    end();
}

TEST(nobody_reads)
{
    AUTO(close_p) int dir = -1;
    int fds[2];

    begin();
    sh("head -c 1000000 /dev/zero >in/f");
    signal(SIGPIPE, SIG_IGN);
    dir = open("in", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    EXPECT(pipe(fds) == 0);
    close(fds[0]);
    EXPECT(acp_tar_write(dir, "in", fds[1], &count, &e) == -EPIPE);
    close(fds[1]);
    end();
}
