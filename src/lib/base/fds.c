#include "lib/base/fds.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "lib/base/clock.h"
#include "lib/base/fd.h"

#define RESERVE_MIN 16
#define RESERVE_MAX 512
#define NR_OPEN     1048576u
#define OLD_NS      50000000ull /* how long a slow count stays valid */

uint64_t fds_max(void)
{
    struct rlimit l = {0};

    getrlimit(RLIMIT_NOFILE, &l);
    return l.rlim_cur;
}

/* Since Linux 6.2 the size of the directory is the number of descriptors. 0: an older kernel. */
static uint64_t told_by_size(void)
{
    struct stat st;

    return stat("/proc/self/fd", &st) == 0 ? (uint64_t)st.st_size : 0;
}

static uint64_t count(void)
{
    uint64_t n = 0;
    DIR *dir = opendir("/proc/self/fd");

    if (!dir)
        return errno == EMFILE ? fds_max() : 0;
    for (const struct dirent *d; (d = readdir(dir));)
        n += d->d_name[0] != '.';
    closedir(dir);
    return n - 1; /* less the one that read the directory, which is closed now */
}

uint64_t fds_open(void)
{
    uint64_t n = told_by_size();

    return n > 0 ? n : count();
}

static uint64_t counted_of_late(void)
{
    static uint64_t n, at_ns;
    uint64_t now = clock_ns();

    if (at_ns == 0 || now - at_ns > OLD_NS) {
        n = count();
        at_ns = now;
    }
    return n;
}

enum fds_level fds_level(void)
{
    uint64_t n = told_by_size(), max = fds_max(), reserve = max / 8;

    if (n == 0)
        n = counted_of_late();
    reserve = reserve < RESERVE_MIN ? RESERVE_MIN : reserve > RESERVE_MAX ? RESERVE_MAX : reserve;
    return n + reserve / 2 >= max   ? FDS_LAST
           : n + reserve >= max     ? FDS_SCARCE
           : n + 2 * reserve >= max ? FDS_LOW
                                    : FDS_PLENTY;
}

/* The kernel's own bound: it refuses a higher limit even to root. */
static rlim_t most(void)
{
    AUTO(free_p) char *text = NULL;

    return file_read(AT_FDCWD, "/proc/sys/fs/nr_open", 32, &text, NULL) < 0
               ? NR_OPEN
               : strtoull(text, NULL, 10);
}

void fds_raise_limit(void)
{
    rlim_t n = most();
    struct rlimit l = {n, n};

    if (setrlimit(RLIMIT_NOFILE, &l) == 0 || getrlimit(RLIMIT_NOFILE, &l) < 0)
        return;
    l.rlim_cur = l.rlim_max;
    setrlimit(RLIMIT_NOFILE, &l);
}
