/* Rules of a .dockerignore. */
#include "tap.h"

#include "cli/client/ignore.h"

TAP_MAIN

static void expect(const char *rules, const char *ignored, const char *kept)
{
    struct ignore g;

    ignore_read(rules, &g);
    for (int i = 0; i < 2; i++) {
        AUTO(free_p) char *list = xstrdup(i ? kept : ignored);
        char *p = list, *path;

        while ((path = strsep(&p, " ")))
            if (*path && ignore_has(&g, path) != (i == 0)) {
                tap_failures++;
                printf("# '%s' of: %s\n", path, rules);
            }
    }
    ignore_done(&g);
}

TEST(names_and_all_below_them)
{
    expect("node_modules\n", "node_modules node_modules/a/b", "a/node_modules node_modules2");
    expect("/a/b/\n", "a/b a/b/c", "a b");
    expect("./x//y\n", "x/y", "x");
    expect("\n# a comment\n  *.o  \r\n", "a.o .o", "a/b.o #");
}

TEST(patterns)
{
    expect("*.log", "a.log .log", "a.logs d/a.log");
    expect("*/temp?", "a/temp1 b/tempx/c", "temp1 a/temp a/b/temp1");
    expect("**/*.pyc", "a.pyc a/b.pyc a/b/c.pyc", "a.py");
    expect("a/**/z", "a/z a/b/z a/b/c/z/x", "z b/z");
    expect("a/**", "a/b a/b/c", "b");
    expect("[a-c]?", "a1 b2", "d1 a");
    expect("a\\*", "a*", "ab");
    expect("**/a/**/b/c/**", "x/a/y/b/c/d a/b/b/c/e a/c/b/c/b", "a/b b/c a/b/c a/b/x/c");
    expect("a/**/**", "a/b", "a b");
    /* many ways to match, of which none does */
    expect(
        "**/a/**/a/**/a/**/a/**/a/**/a/**/a/**/a/b", "a/a/a/a/a/a/a/a/b",
        "a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/c");
}

TEST(the_last_one_that_matches_decides)
{
    expect("*.md\n!README.md", "a.md", "README.md");
    expect("*.md\n!README.md\nREADME*", "a.md README.md README.x", "b");
    expect("*\n!src", "a b/c", "src src/a/b");
    expect("docs\n!docs/keep", "docs docs/a", "docs/keep docs/keep/b");
    expect("**\n!a/**/z", "a b", "a/z a/b/z");
}

TEST(everything)
{
    expect(".", "a a/b", "");
    expect("", "", "a");
    expect("!a", "", "a b");
    expect("../x/../y", "y", "x");
}
