/* Where the programs that sandglass becomes are looked for: beside it. */
#include "tap.h"

#include <limits.h>

#include "cli/local/delegate.h"

TAP_MAIN

TEST(beside_us)
{
    char path[PATH_MAX], self[PATH_MAX], expected[PATH_MAX + 64];
    ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);

    EXPECT(n > 0);
    self[n > 0 ? n : 0] = '\0';
    char *slash = strrchr(self, '/');
    EXPECT(slash != NULL);
    if (!slash)
        return;
    *slash = '\0';
    snprintf(expected, sizeof(expected), "%s/../libexec/sandglass/a-program", self);
    EXPECT(delegate_path("a-program", path, sizeof(path)) == 0);
    EXPECT_STR(path, expected);
}

TEST(a_path_that_does_not_fit)
{
    char path[8];

    EXPECT(delegate_path("a-program", path, sizeof(path)) == -ENAMETOOLONG);
}
