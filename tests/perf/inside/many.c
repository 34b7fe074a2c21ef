/* Many files, and much in files.
 *
 *   many look DIR ROUNDS        lists all below DIR, then stats each file, then opens and reads each
 *   many filtered DIR ROUNDS    the same under a seccomp filter that allows everything
 *   many write DIR              writes a file of 256 MiB, then 20,000 small ones, and removes them
 *
 * look prints the least processor time of each in microseconds, and how many files there are; write
 * the time that each took. */
#include <fcntl.h>
#include <ftw.h>
#include <stdbool.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "meter.h"

#define OPEN_DIRS   64
#define READ_BYTES  4096
#define LARGE_MIB   256
#define SMALL_FILES 20000
#define SMALL_BYTES 2000
#define SMALL_DIRS  100

static char **paths;
static size_t n_paths, room;

static int remember(const char *path, const struct stat *st, int type, struct FTW *where)
{
    (void)st, (void)where;
    if (type != FTW_F)
        return 0;
    if (n_paths == room) {
        room = room ? 2 * room : 4096;
        paths = realloc(paths, room * sizeof(paths[0]));
    }
    paths[n_paths] = strdup(path);
    if (!paths[n_paths++])
        meter_fail("remember a name");
    return 0;
}

static void list_all(const char *dir)
{
    while (n_paths > 0)
        free(paths[--n_paths]);
    if (nftw(dir, remember, OPEN_DIRS, FTW_PHYS) != 0)
        meter_fail(dir);
}

static void stat_all(void)
{
    struct stat st;

    for (size_t i = 0; i < n_paths; i++)
        if (stat(paths[i], &st) < 0 && S_ISREG(st.st_mode))
            meter_fail(paths[i]);
}

static void read_all(void)
{
    static char buf[READ_BYTES];

    for (size_t i = 0; i < n_paths; i++) {
        int fd = open(paths[i], O_RDONLY | O_CLOEXEC);
        if (fd < 0)
            continue; /* a file that this user may not read */
        if (read(fd, buf, sizeof(buf)) < 0)
            meter_fail(paths[i]);
        close(fd);
    }
}

static void least(double *best, struct meter start)
{
    double us = meter_start().cpu_us - start.cpu_us;

    if (*best == 0 || us < *best)
        *best = us;
}

static void look(const char *dir, long rounds)
{
    double list = 0, stats = 0, reads = 0;

    for (long i = 0; i < rounds; i++) {
        struct meter at = meter_start();
        list_all(dir);
        least(&list, at);
        at = meter_start();
        stat_all();
        least(&stats, at);
        at = meter_start();
        read_all();
        least(&reads, at);
    }
    printf("%.1f %.1f %.1f %zu\n", list, stats, reads, n_paths);
}

/* What any filter costs, whatever it says. musl has no names for one: this is "return ALLOW". */
static void filter(void)
{
    static const struct {
        unsigned short code;
        unsigned char jt, jf;
        unsigned k;
    } allow = {0x06, 0, 0, 0x7fff0000};
    struct {
        unsigned short len;
        const void *filter;
    } program = {1, &allow};

    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 || prctl(PR_SET_SECCOMP, 2, &program) < 0)
        meter_fail("make a filter");
}

static void write_file(const char *path, const char *data, size_t len, size_t times)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);

    if (fd < 0)
        meter_fail(path);
    for (size_t i = 0; i < times; i++)
        if (write(fd, data, len) != (ssize_t)len)
            meter_fail(path);
    close(fd);
}

static void small_name(char path[32], int i)
{
    snprintf(path, 32, "many%d/%d", i % SMALL_DIRS, i);
}

static void write_all(void)
{
    static char data[1 << 20];
    char path[32];
    struct meter at;
    double large;

    memset(data, 'x', sizeof(data));
    at = meter_start();
    write_file("large", data, sizeof(data), LARGE_MIB);
    large = meter_start().wall_us - at.wall_us;
    at = meter_start();
    for (int i = 0; i < SMALL_FILES; i++) {
        small_name(path, i);
        if (i < SMALL_DIRS) {
            char dir[32];
            snprintf(dir, sizeof(dir), "many%d", i);
            if (mkdir(dir, 0755) < 0)
                meter_fail(dir);
        }
        write_file(path, data, SMALL_BYTES, 1);
    }
    printf("%.1f %.1f\n", large, meter_start().wall_us - at.wall_us);
    unlink("large");
    for (int i = 0; i < SMALL_FILES; i++) {
        small_name(path, i);
        unlink(path);
    }
    for (int i = 0; i < SMALL_DIRS; i++) {
        snprintf(path, sizeof(path), "many%d", i);
        rmdir(path);
    }
}

int main(int argc, char **argv)
{
    bool filtered = argc == 4 && strcmp(argv[1], "filtered") == 0;

    if (filtered)
        filter();
    if (filtered || (argc == 4 && strcmp(argv[1], "look") == 0)) {
        look(argv[2], strtol(argv[3], NULL, 10));
        return 0;
    }
    if (argc != 3 || strcmp(argv[1], "write") != 0 || chdir(argv[2]) < 0)
        meter_fail("many look|filtered DIR ROUNDS, many write DIR");
    write_all();
    return 0;
}
