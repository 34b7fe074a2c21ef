#include "wire/process_figures.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "lib/base/clock.h"
#include "lib/base/fd.h"
#include "lib/base/fds.h"

#define TEXT_MAX      4096
#define START_FIELD   22 /* of /proc/self/stat: when the process started, in ticks since boot */
#define NS_PER_SECOND 1000000000ull

static uint64_t cpu_usec(void)
{
    struct timespec t = {0};

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (uint64_t)t.tv_sec * 1000000 + (uint64_t)t.tv_nsec / 1000;
}

static char *read_text(const char *path)
{
    char *text = NULL;
    size_t len;

    return file_read(AT_FDCWD, path, TEXT_MAX, &text, &len) < 0 ? NULL : text;
}

static uint64_t resident_bytes(void)
{
    AUTO(free_p) char *text = read_text("/proc/self/statm");
    char *second = text ? strchr(text, ' ') : NULL;

    return second ? strtoull(second, NULL, 10) * (uint64_t)sysconf(_SC_PAGESIZE) : 0;
}

/* Computed once and remembered: if somebody sets the wall clock later, the start must not move. */
static int64_t started_ms(void)
{
    static int64_t known;
    AUTO(free_p) char *text = known ? NULL : read_text("/proc/self/stat");
    char *p = text ? strrchr(text, ')') : NULL; /* the name before it may hold blanks and
                                                 * brackets */

    if (known || !p)
        return known;
    for (int field = 2; field < START_FIELD && p; field++)
        p = strchr(p + 1, ' ');
    uint64_t ticks = p ? strtoull(p, NULL, 10) : 0;
    uint64_t since_boot_ns = ticks * (NS_PER_SECOND / (uint64_t)sysconf(_SC_CLK_TCK));
    known = clock_wall_ms() - (int64_t)((clock_ns() - since_boot_ns) / 1000000);
    return known;
}

void process_figures(struct order_process *ret)
{
    *ret = (struct order_process){.cpu_usec = cpu_usec(),
                                  .resident_bytes = resident_bytes(),
                                  .open_fds = fds_open(),
                                  .max_fds = fds_max(),
                                  .started_ms = started_ms()};
}
