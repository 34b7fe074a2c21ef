#include "lib/base/clock.h"

#include <assert.h>
#include <limits.h>
#include <stdio.h>
#include <time.h>

#include "lib/base/base.h"

#define NS_PER_MS 1000000u
#define NS_PER_S  1000000000u

uint64_t clock_ns(void)
{
    struct timespec t;
    int r = clock_gettime(CLOCK_BOOTTIME, &t);

    assert(r == 0);
    return (uint64_t)t.tv_sec * NS_PER_S + (uint64_t)t.tv_nsec;
}

int64_t clock_wall_ms(void)
{
    struct timespec t;
    int r = clock_gettime(CLOCK_REALTIME, &t);

    assert(r == 0);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / NS_PER_MS;
}

void clock_text(int64_t ms, char ret[CLOCK_TEXT_LEN])
{
    time_t seconds = (time_t)(ms / 1000);
    struct tm tm;

    if (ms < 0 || !gmtime_r(&seconds, &tm) || tm.tm_year > 9999 - 1900) {
        seconds = 0;
        ms = 0;
        gmtime_r(&seconds, &tm);
    }
    size_t n = strftime(ret, CLOCK_TEXT_LEN, "%Y-%m-%dT%H:%M:%S", &tm);
    snprintf(ret + n, CLOCK_TEXT_LEN - n, ".%03dZ", (int)(ms % 1000));
}

int clock_poll_ms(uint64_t deadline_ns)
{
    uint64_t now = clock_ns();

    if (deadline_ns <= now)
        return 0;

    /* Rounded up, so that a poll that returns for the time has really reached the deadline. */
    uint64_t left = deadline_ns - now;
    uint64_t ms = left / NS_PER_MS + (left % NS_PER_MS != 0);
    return ms < INT_MAX ? (int)ms : INT_MAX;
}
