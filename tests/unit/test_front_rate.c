/* Buckets of tokens. */
#include <unistd.h>

#include "front/core/rate.h"
#include "tap.h"

static struct rate_table table;

TEST(a_burst_then_the_rate)
{
    int taken = 0;

    for (int i = 0; i < 100; i++)
        taken += rate_take(&table, "a", 0.001, 5);
    EXPECT(taken == 5);
    EXPECT(!rate_peek(&table, "a", 0.001, 5));
    EXPECT(rate_take(&table, "b", 0.001, 5)); /* another key is not concerned */
}

TEST(it_fills_up_again)
{
    EXPECT(rate_take(&table, "c", 1000, 1));
    usleep(5000);
    EXPECT(rate_peek(&table, "c", 1000, 1));
    EXPECT(rate_take(&table, "c", 1000, 1));
}

TEST(looking_takes_nothing)
{
    for (int i = 0; i < 10; i++)
        EXPECT(rate_peek(&table, "d", 0.001, 1));
    EXPECT(rate_take(&table, "d", 0.001, 1));
    EXPECT(!rate_peek(&table, "d", 0.001, 1));
}

TAP_MAIN
