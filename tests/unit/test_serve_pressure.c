/* When memory is short. */
#include "tap.h"

#include "warden/memory/pressure.h"

TAP_MAIN

#define MIB (1ull << 20)

static enum pressure_state after(enum pressure_state now, uint64_t used, uint64_t available)
{
    struct pressure_reading r = {
        .total = 4000 * MIB, .available = available, .used = used, .limit = 1000 * MIB};

    return pressure_judge(now, &r);
}

TEST(each_state_begins_where_the_table_says)
{
    EXPECT(after(PRESSURE_NONE, 0, 4000 * MIB) == PRESSURE_NONE);
    EXPECT(after(PRESSURE_NONE, 850 * MIB, 4000 * MIB) == PRESSURE_NONE);
    EXPECT(after(PRESSURE_NONE, 851 * MIB, 4000 * MIB) == PRESSURE_POOLS);
    EXPECT(after(PRESSURE_NONE, 901 * MIB, 4000 * MIB) == PRESSURE_KERNELS);
    EXPECT(after(PRESSURE_NONE, 951 * MIB, 4000 * MIB) == PRESSURE_CREATES);
    EXPECT(after(PRESSURE_NONE, 2000 * MIB, 4000 * MIB) == PRESSURE_CREATES);
}

TEST(the_machine_counts_whoever_has_its_memory)
{
    EXPECT(after(PRESSURE_NONE, 0, 260 * MIB) == PRESSURE_NONE); /* 100 MiB are the kernel's */
    EXPECT(after(PRESSURE_NONE, 0, 240 * MIB) == PRESSURE_POOLS);
    EXPECT(after(PRESSURE_NONE, 0, 120 * MIB) == PRESSURE_CREATES);
    EXPECT(after(PRESSURE_NONE, 0, 0) == PRESSURE_CREATES);
}

TEST(a_state_is_left_a_little_later)
{
    EXPECT(after(PRESSURE_POOLS, 840 * MIB, 4000 * MIB) == PRESSURE_POOLS);
    EXPECT(after(PRESSURE_POOLS, 820 * MIB, 4000 * MIB) == PRESSURE_NONE);
    EXPECT(after(PRESSURE_CREATES, 940 * MIB, 4000 * MIB) == PRESSURE_CREATES);
    EXPECT(after(PRESSURE_CREATES, 890 * MIB, 4000 * MIB) == PRESSURE_KERNELS);
    EXPECT(after(PRESSURE_CREATES, 500 * MIB, 4000 * MIB) == PRESSURE_NONE);
    EXPECT(after(PRESSURE_POOLS, 895 * MIB, 4000 * MIB) == PRESSURE_POOLS);
}

TEST(meminfo_is_read)
{
    struct pressure_reading r = {0};

    EXPECT(pressure_parse("MemTotal:       24683520 kB\nMemFree:        17942528 kB\n"
                          "MemAvailable:   23176192 kB\n",
                          &r));
    EXPECT(r.total == 24683520ull * 1024 && r.available == 23176192ull * 1024);
    EXPECT(!pressure_parse("MemTotal:       24683520 kB\n", &r));
    EXPECT(!pressure_parse("MemTotal: many\nMemAvailable: 3 kB\n", &r));
}
