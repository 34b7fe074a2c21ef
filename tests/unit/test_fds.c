/* How many descriptors there are, when there are some and when there are none. */
#include "tap.h"

#include <fcntl.h>
#include <sys/resource.h>

#include "lib/base/fds.h"

TAP_MAIN

#define LIMIT 128 /* of which 16 are kept back */

static int held[LIMIT], n_held;

static void limit_to(rlim_t n)
{
    struct rlimit l;

    getrlimit(RLIMIT_NOFILE, &l);
    l.rlim_cur = n;
    EXPECT(setrlimit(RLIMIT_NOFILE, &l) == 0);
}

/* Opens some until so many are left. */
static void leave(uint64_t left)
{
    while (fds_max() - fds_open() > left && n_held < LIMIT)
        held[n_held++] = open("/dev/null", O_RDONLY | O_CLOEXEC);
}

static void let_go(void)
{
    while (n_held > 0)
        close(held[--n_held]);
}

TEST(levels)
{
    uint64_t before = fds_open();

    limit_to(LIMIT);
    EXPECT(fds_max() == LIMIT);
    EXPECT(before > 2 && fds_level() == FDS_PLENTY);
    leave(33);
    EXPECT(fds_level() == FDS_PLENTY);
    leave(32);
    EXPECT(fds_level() == FDS_LOW);
    leave(16);
    EXPECT(fds_level() == FDS_SCARCE);
    leave(8);
    EXPECT(fds_level() == FDS_LAST);
    let_go();
    EXPECT(fds_open() == before && fds_level() == FDS_PLENTY);
}

TEST(none_left)
{
    limit_to(LIMIT);
    while (n_held < LIMIT && (held[n_held] = open("/dev/null", O_RDONLY | O_CLOEXEC)) >= 0)
        n_held++;
    EXPECT(n_held < LIMIT && errno == EMFILE);
    /* One that was there before may have a number above the limit. */
    EXPECT(fds_open() >= LIMIT && fds_level() == FDS_LAST);
    let_go();
}

/* Numbers in use need not be the lowest: what counts is how many there are. */
TEST(holes_do_not_matter)
{
    limit_to(LIMIT);
    leave(16);
    close(held[0]);
    held[0] = held[--n_held];
    EXPECT(fds_level() == FDS_LOW);
    let_go();
}

TEST(raised)
{
    struct rlimit l;

    limit_to(LIMIT);
    fds_raise_limit();
    getrlimit(RLIMIT_NOFILE, &l);
    EXPECT(l.rlim_cur == l.rlim_max && l.rlim_cur > LIMIT);
}
