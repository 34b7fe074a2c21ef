#include "tap.h"

#include "warden/host/limits.h"

TAP_MAIN

static struct sg_error e;

TEST(nothing_given_means_the_documented_defaults)
{
    struct sg_limits none = {0}, l;

    EXPECT(limits_complete(&none, &l, &e) == 0);
    EXPECT(l.memory_bytes == 1ull << 30 && l.disk_bytes == 512ull << 20);
    EXPECT(l.cpus_milli == 1000 && l.pids == 512 && l.disk_inodes == 131072);
}

TEST(a_small_disk_still_has_inodes)
{
    struct sg_limits given = {.disk_bytes = 1u << 20}, l;

    EXPECT(limits_complete(&given, &l, &e) == 0 && l.disk_inodes == 4096);
}

TEST(senseless_limits_are_refused_by_name)
{
    static const struct {
        struct sg_limits l;
        const char *word;
    } bad[] = {
        {{.memory_bytes = 1}, "memory"},
        {{.disk_bytes = 1}, "disk"},
        {{.cpus_milli = 1}, "cpus"},
        {{.pids = 100000}, "pids"},
    };

    for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
        struct sg_limits l;
        EXPECT(limits_complete(&bad[i].l, &l, &e) == -EINVAL && e.kind == SG_ERR_INVALID);
        EXPECT(strncmp(e.message, bad[i].word, strlen(bad[i].word)) == 0);
    }
}

TEST(languages_have_names_and_suffixes)
{
    enum sg_language l;

    EXPECT(sg_language_parse("py", &l, &e) == 0 && l == SG_PYTHON);
    EXPECT(sg_language_parse("TypeScript", &l, &e) == 0 && l == SG_TYPESCRIPT);
    EXPECT(sg_language_parse("cobol", &l, &e) == -EINVAL && strstr(e.message, "'cobol'"));
    EXPECT(sg_language_of_path("/a.b/x.mjs", &l, &e) == 0 && l == SG_JAVASCRIPT);
    EXPECT(sg_language_of_path("x.sh", &l, &e) == 0 && l == SG_BASH);
    EXPECT(sg_language_of_path("/a.py/x", &l, &e) == -EINVAL);
    EXPECT(sg_language_of_path("x.pyc", &l, &e) == -EINVAL);
}
