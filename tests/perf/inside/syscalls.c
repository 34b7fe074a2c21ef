/* A program that does little but system calls.
 *
 *   syscalls null COUNT        COUNT times getppid: the cheapest call, so the filter shows most
 *   syscalls mix COUNT FILE    COUNT rounds of 21 calls on open files, memory and the process;
 * calls that look up a path are left to the file-heavy programs */
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "meter.h"

#define SMALL  512
#define PAGE   4096
#define MAPPED 65536

struct files {
    int zero, null, file, pipe[2];
};

static void must(long r, const char *what)
{
    if (r < 0)
        meter_fail(what);
}

static void transfer(const struct files *f)
{
    static char buf[PAGE];

    for (int i = 0; i < 4; i++) { /* 8 calls */
        must(read(f->zero, buf, SMALL), "read /dev/zero");
        must(write(f->null, buf, SMALL), "write /dev/null");
    }
    for (int i = 0; i < 2; i++) { /* 6 calls */
        struct stat st;
        must(lseek(f->file, i * PAGE, SEEK_SET), "lseek");
        must(read(f->file, buf, PAGE), "read the file");
        must(fstat(f->file, &st), "fstat");
    }
    must(write(f->pipe[1], buf, 64), "write to a pipe"); /* 2 calls */
    must(read(f->pipe[0], buf, 64), "read from a pipe");
}

static void others(const struct files *f)
{
    struct pollfd p = {.fd = f->pipe[0], .events = POLLIN};
    void *m = mmap(NULL, MAPPED, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (m == MAP_FAILED)
        meter_fail("mmap");
    munmap(m, MAPPED);
    must(poll(&p, 1, 0), "poll");
    syscall(SYS_getppid);
    syscall(SYS_getuid);
}

static void mix(long count, const char *path)
{
    struct files f = {.zero = open("/dev/zero", O_RDONLY),
                      .null = open("/dev/null", O_WRONLY),
                      .file = open(path, O_RDONLY)};

    must(f.zero, "/dev/zero");
    must(f.null, "/dev/null");
    must(f.file, path);
    must(pipe(f.pipe), "pipe");
    struct meter start = meter_start();
    for (long i = 0; i < count; i++) {
        transfer(&f);
        others(&f);
    }
    meter_print(start);
}

static void null_calls(long count)
{
    struct meter start = meter_start();

    for (long i = 0; i < count; i++)
        syscall(SYS_getppid);
    meter_print(start);
}

int main(int argc, char **argv)
{
    if (argc == 3 && strcmp(argv[1], "null") == 0)
        null_calls(strtol(argv[2], NULL, 10));
    else if (argc == 4 && strcmp(argv[1], "mix") == 0)
        mix(strtol(argv[2], NULL, 10), argv[3]);
    else
        return 2;
    return 0;
}
