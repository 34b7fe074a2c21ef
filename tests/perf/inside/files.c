/* A program that does little but use files.
 *
 *   files walk COUNT DIR    COUNT times: look at everything below DIR and read every file whole
 *   files churn COUNT DIR   COUNT times: make, write, look at, read and remove 100 files in DIR */
#include <fcntl.h>
#include <ftw.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "meter.h"

#define FILES      100
#define FILE_BYTES 4096
#define OPEN_DIRS  16

static void read_whole(const char *path)
{
    static char buf[65536];
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n;

    if (fd < 0)
        meter_fail(path);
    while ((n = read(fd, buf, sizeof(buf))) > 0)
        ;
    if (n < 0)
        meter_fail(path);
    close(fd);
}

static int read_entry(const char *path, const struct stat *st, int type, struct FTW *where)
{
    (void)where;
    if (type == FTW_F && S_ISREG(st->st_mode))
        read_whole(path);
    return 0;
}

static void walk(long count, const char *dir)
{
    for (long i = 0; i < count; i++)
        if (nftw(dir, read_entry, OPEN_DIRS, FTW_PHYS) != 0)
            meter_fail(dir);
}

static void write_new(const char *path)
{
    static const char buf[FILE_BYTES] = "content";
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);

    if (fd < 0 || write(fd, buf, sizeof(buf)) != (ssize_t)sizeof(buf))
        meter_fail(path);
    close(fd);
}

static void churn(long count, const char *dir)
{
    char path[256];
    struct stat st;

    for (long i = 0; i < count; i++) {
        for (int k = 0; k < FILES; k++) {
            snprintf(path, sizeof(path), "%s/%d", dir, k);
            write_new(path);
        }
        for (int k = 0; k < FILES; k++) {
            snprintf(path, sizeof(path), "%s/%d", dir, k);
            if (stat(path, &st) < 0)
                meter_fail(path);
            read_whole(path);
            unlink(path);
        }
    }
}

static void churn_in_new_dir(long count, const char *parent)
{
    char dir[128];

    snprintf(dir, sizeof(dir), "%s/churn-%d", parent, (int)getpid());
    if (mkdir(dir, 0700) < 0)
        meter_fail(dir);
    struct meter start = meter_start();
    churn(count, dir);
    meter_print(start);
    rmdir(dir);
}

int main(int argc, char **argv)
{
    long count = argc == 4 ? strtol(argv[2], NULL, 10) : 0;

    if (count > 0 && strcmp(argv[1], "walk") == 0) {
        struct meter start = meter_start();
        walk(count, argv[3]);
        meter_print(start);
    } else if (count > 0 && strcmp(argv[1], "churn") == 0) {
        churn_in_new_dir(count, argv[3]);
    } else {
        return 2;
    }
    return 0;
}
