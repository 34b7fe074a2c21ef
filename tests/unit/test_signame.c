#include "tap.h"

#include <signal.h>

#include "lib/base/signame.h"

TAP_MAIN

TEST(names_are_the_systems)
{
    for (int sig = 1; sig < 32; sig++)
        if (sigabbrev_np(sig) && sig != SIGSTKFLT && sig != SIGPOLL)
            EXPECT_STR(signal_name(sig), sigabbrev_np(sig));
}

TEST(unknown_numbers_are_harmless)
{
    EXPECT_STR(signal_name(0), "?");
    EXPECT_STR(signal_name(-1), "?");
    EXPECT_STR(signal_name(16), "?");
    EXPECT_STR(signal_name(64), "?");
    EXPECT_STR(signal_name(1 << 30), "?");
}
