/* Names in layers, and extended attributes. */
#include <string.h>

#include "image/attrs.h"
#include "image/path.h"
#include "tap.h"

TAP_MAIN

static char out[IMAGE_PATH_MAX + 1];
static struct sg_error e;

static const char *clean(const char *name)
{
    static const struct image_limits limits = {.path = 40, .depth = 4};

    return path_clean(name, &limits, out, &e) < 0 ? "!" : out;
}

TEST(names_are_taken_below_the_root)
{
    EXPECT_STR(clean("usr/bin"), "usr/bin");
    EXPECT_STR(clean("/usr/bin"), "usr/bin");
    EXPECT_STR(clean("./usr//bin/./"), "usr/bin");
    EXPECT_STR(clean("./"), "");
    EXPECT_STR(clean("/"), "");
    EXPECT_STR(clean("..."), "...");
    EXPECT_STR(clean(".wh..x"), ".wh..x");
}

TEST(names_that_could_lead_elsewhere_or_are_too_long_are_refused)
{
    char part[IMAGE_NAME_MAX + 2];
    struct image_limits limits = {.path = IMAGE_PATH_MAX, .depth = 4};

    EXPECT_STR(clean(""), "!");
    EXPECT_STR(clean(".."), "!");
    EXPECT_STR(clean("usr/../etc"), "!");
    EXPECT(strstr(e.message, "'usr/../etc'"));
    EXPECT_STR(clean("a/b/c/d"), "a/b/c/d");
    EXPECT_STR(clean("a/b/c/d/e"), "!");
    EXPECT_STR(clean("01234567890123456789012345678901234567890"), "!");
    memset(part, 'x', sizeof(part));
    part[IMAGE_NAME_MAX] = '\0';
    EXPECT(path_clean(part, &limits, out, &e) == 0);
    part[IMAGE_NAME_MAX] = 'x';
    part[IMAGE_NAME_MAX + 1] = '\0';
    EXPECT(path_clean(part, &limits, out, &e) < 0);
}

TEST(messages_show_names_on_one_line)
{
    char buf[PATH_SHOWN], name[300];

    EXPECT_STR(path_show("a\nb\033[2Jc\xff", buf), "a?b?[2Jc?");
    memset(name, 'y', sizeof(name));
    name[sizeof(name) - 1] = '\0';
    EXPECT(strlen(path_show(name, buf)) < PATH_SHOWN && strstr(buf, "y..."));
}

TEST(only_clean_paths_are_clean)
{
    static const char *const bad[] = {"/a", "a/", "a//b", ".", "..", "a/..", "a/./b", "/"};
    char part[IMAGE_NAME_MAX + 2];

    EXPECT(path_is_clean("", 0) && path_is_clean("a/b", 3) && path_is_clean("...", 3));
    for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
        EXPECT(!path_is_clean(bad[i], strlen(bad[i])));
    EXPECT(!path_is_clean("a\0b", 3));
    memset(part, 'x', sizeof(part));
    EXPECT(path_is_clean(part, IMAGE_NAME_MAX) && !path_is_clean(part, IMAGE_NAME_MAX + 1));
}

TEST(attributes_that_a_world_has_are_kept)
{
    struct attrs a = {0};

    EXPECT(attrs_set(&a, "user.color", "red", 3, IMAGE_XATTRS_MAX) == 0 && a.len == 12);
    EXPECT(attrs_set(&a, "security.capability", "\1\0\0\2", 4, IMAGE_XATTRS_MAX) == 0);
    EXPECT(attrs_set(&a, "user.empty", "", 0, IMAGE_XATTRS_MAX) == 0);
    EXPECT(attrs_are_valid(a.v, a.len));
    size_t len = a.len;
    EXPECT(attrs_set(&a, "user.color", "blue", 4, IMAGE_XATTRS_MAX) == 0 && a.len == len + 4);
    EXPECT(memmem(a.v, a.len, "blue", 4) && !memmem(a.v, a.len, "red", 3));
    EXPECT(attrs_are_valid(a.v, a.len));
}

TEST(other_attributes_are_left_out)
{
    static const char *const others[] = {
        "trusted.overlay.opaque", "user.overlay.whiteout",   "user.",
        "security.selinux",       "system.posix_acl_access", "user"};
    struct attrs a = {0};

    for (size_t i = 0; i < ARRAY_SIZE(others); i++)
        EXPECT(attrs_set(&a, others[i], "x", 1, IMAGE_XATTRS_MAX) == 0 && a.len == 0);
}

TEST(attributes_are_bounded)
{
    static const uint8_t value[IMAGE_XATTRS_MAX];
    struct attrs a = {0};
    char name[16];

    EXPECT(attrs_set(&a, "user.a", value, 100, 64) == -E2BIG && a.len == 0);
    EXPECT(attrs_set(&a, "user.a", value, sizeof(value), IMAGE_XATTRS_MAX) == -E2BIG);
    EXPECT(attrs_set(&a, "user.a", value, sizeof(value) - 5, IMAGE_XATTRS_MAX) == 0);
    a.len = 0;
    for (int i = 0; i < 64; i++) {
        snprintf(name, sizeof(name), "user.%d", i);
        EXPECT(attrs_set(&a, name, "", 0, IMAGE_XATTRS_MAX) == 0);
    }
    EXPECT(attrs_set(&a, "user.64", "", 0, IMAGE_XATTRS_MAX) == -E2BIG);
    EXPECT(attrs_set(&a, "user.63", "x", 1, IMAGE_XATTRS_MAX) == 0);
    EXPECT(attrs_are_valid(a.v, a.len));
}

TEST(bytes_that_are_no_attributes_are_none)
{
    static const struct {
        const char *bytes;
        size_t len;
    } bad[] = {{"\1\1\0", 3},
               {"\1\1\1\0a", 5},
               {"\0\1\0\0", 4},
               {"\1\2\0\0a\0\0\0", 8},
               {"\1\6\0\0a\0\0\0", 8},
               {"\1\1\0\0a\0\0x", 8},
               {"\1\1\377\377axxx", 8},
               {"\1\1\0\0a\0\0\0\1\1\0\0a\0\0\0", 16},
               {"\10\1\0\0overlay.", 12}};

    EXPECT(attrs_are_valid(NULL, 0));
    EXPECT(attrs_are_valid((const uint8_t *)"\1\1\0\0a\0\0\0", 8));
    for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
        EXPECT(!attrs_are_valid((const uint8_t *)bad[i].bytes, bad[i].len));
}
