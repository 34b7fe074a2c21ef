#include <limits.h>
#include <poll.h>
#include <time.h>

#include "lib/base/base.h"
#include "lib/base/clock.h"
#include "tap.h"

#define MS 1000000ull

TEST(counts_as_boottime_does)
{
    struct timespec t;
    uint64_t before = clock_ns();

    clock_gettime(CLOCK_BOOTTIME, &t);
    uint64_t between = (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
    EXPECT(before <= between);
    EXPECT(between <= clock_ns());
}

TEST(past_and_present_are_zero)
{
    EXPECT(clock_poll_ms(0) == 0);
    EXPECT(clock_poll_ms(clock_ns()) == 0);
    EXPECT(clock_poll_ms(clock_ns() - MS) == 0);
}

TEST(far_deadlines_are_clamped)
{
    EXPECT(clock_poll_ms(UINT64_MAX) == INT_MAX);
    EXPECT(clock_poll_ms(clock_ns() + ((uint64_t)INT_MAX + 10) * MS) == INT_MAX);
}

TEST(rounds_up)
{
    /* An hour and a bit: the bit counts as a millisecond, minus what passes between the two lines.
     */
    int ms = clock_poll_ms(clock_ns() + 3600000 * MS + MS / 2);

    EXPECT(ms > 3600000 - 2000 && ms <= 3600001);
}

/* The reason for rounding up: no second round of a zero-length poll. */
TEST(a_poll_of_that_length_reaches_the_deadline)
{
    for (int i = 0; i < 5; i++) {
        uint64_t deadline = clock_ns() + 2 * MS + MS / 3;
        poll(NULL, 0, clock_poll_ms(deadline));
        EXPECT(clock_ns() >= deadline);
        EXPECT(clock_poll_ms(deadline) == 0);
    }
}

TAP_MAIN
