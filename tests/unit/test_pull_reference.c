/* Names of images: which are names, and what Docker makes of them. */
#include <string.h>

#include "pull/reference.h"
#include "tap.h"

#define DIGEST "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define TEN    "aaaaaaaaaa"
#define FIFTY  TEN TEN TEN TEN TEN

static const struct {
    const char *text, *host, *path, *version;
} good[] = {
    {"debian", "registry-1.docker.io", "library/debian", "latest"},
    {"debian:12", "registry-1.docker.io", "library/debian", "12"},
    {"docker.io/debian:12", "registry-1.docker.io", "library/debian", "12"},
    {"index.docker.io/me/app", "registry-1.docker.io", "me/app", "latest"},
    {"me/app:v1.0-rc_2", "registry-1.docker.io", "me/app", "v1.0-rc_2"},
    {"me/app@" DIGEST, "registry-1.docker.io", "me/app", DIGEST},
    {"me/app:v1@" DIGEST, "registry-1.docker.io", "me/app", DIGEST},
    {"ghcr.io/x/y@" DIGEST, "ghcr.io", "x/y", DIGEST},
    {"localhost/a", "localhost", "a", "latest"},
    {"localhost:5000/a/b:tag", "localhost:5000", "a/b", "tag"},
    {"localhost:5000", "registry-1.docker.io", "library/localhost", "5000"},
    {"Host/a", "Host", "a", "latest"},
    {"10.0.0.1:80/a", "10.0.0.1:80", "a", "latest"},
    {"[::1]:5000/a", "[::1]:5000", "a", "latest"},
    {"[2001:db8::1]/a:b", "[2001:db8::1]", "a", "b"},
    {"a-b.example/c", "a-b.example", "c", "latest"},
    {"a__b/c.d/e--f/g_h", "registry-1.docker.io", "a__b/c.d/e--f/g_h", "latest"},
    {"a:_", "registry-1.docker.io", "library/a", "_"},
};

TEST(names_are_read_as_docker_reads_them)
{
    for (size_t i = 0; i < ARRAY_SIZE(good); i++) {
        struct reference r = {0};
        struct sg_error e = {0};

        if (reference_parse(good[i].text, &r, &e) < 0) {
            printf("# %s: %s\n", good[i].text, e.message);
            tap_failures++;
            continue;
        }
        EXPECT_STR(r.host, good[i].host);
        EXPECT_STR(r.path, good[i].path);
        EXPECT_STR(reference_version(&r), good[i].version);
    }
}

static const char *const bad[] = {
    "",
    ":",
    "/",
    "@",
    "a/",
    "/a",
    "a//b",
    "a:",
    "a:.b",
    "a:-b",
    "a:b:c",
    "a:b/c:d",
    "a@",
    "A",
    "a/B",
    "a b",
    "a\n",
    "a/../b",
    "a/./b",
    "-a",
    "a-",
    "a.",
    "_a",
    "a___b",
    "a..b",
    "a._b",
    "a@sha256:0123",
    "a@" DIGEST "0",
    "a@md5:0123456789abcdef0123456789abcdef",
    "a@" DIGEST "@x",
    "a@sha256:0123456789ABCDEF0123456789abcdef0123456789abcdef0123456789abcdef",
    "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef", /* an id, no name */
    "localhost:/a",
    "localhost:0/a",
    "localhost:65536/a",
    "localhost:5000x/a",
    "a.b:1:2/c",
    "-a.example/b",
    "a-.example/b",
    "a..example/b",
    ".example/b",
    "a.example./b",
    "user@a.example/b",
    "user:secret@a.example/b",
    "http://a.example/b",
    "a.example/b?c",
    "a.example/b#c",
    "a.example/b%2e",
    "[::1/a",
    "[]/a",
    "[::1]x/a",
    "[g::1]/a",
    "::1/a",
    "h\xc3\xa4.example/a",
    FIFTY FIFTY FIFTY FIFTY FIFTY "aaaaaa",
    "a:" FIFTY FIFTY TEN TEN "aaaaaaaaa",
};

TEST(other_texts_are_refused)
{
    for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
        struct reference r = {0};
        struct sg_error e = {0};

        if (reference_parse(bad[i], &r, &e) == 0) {
            printf("# '%s' was taken\n", bad[i]);
            tap_failures++;
        }
        EXPECT(e.code == -EINVAL && e.message[0] && !r.path[0]);
    }
}

TEST(the_same_image)
{
    EXPECT(reference_same("me/app", "docker.io/me/app:latest"));
    EXPECT(reference_same("no Reference", "no Reference"));
    EXPECT(!reference_same("me/app", "me/app:v1") && !reference_same("me/app", "x.test/me/app"));
    EXPECT(!reference_same("me/app", "") && !reference_same("A", "a"));
}

TEST(digests)
{
    struct digest d = {0};
    struct digest empty = digest_of("", 0, NULL);

    EXPECT(digest_parse(DIGEST, strlen(DIGEST), &d) && digest_given(&d));
    EXPECT(strncmp(digest_hex(&d), "0123", 4) == 0 && digest_algorithm_len(&d) == 6);
    EXPECT(!digest_parse(DIGEST, strlen(DIGEST) - 1, &d));
    EXPECT_STR(empty.text,
               "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    snprintf(d.text, sizeof(d.text), "sha512:");
    EXPECT(strncmp(digest_of("abc", 3, &d).text, "sha512:ddaf35a193617aba", 23) == 0);
}

TAP_MAIN
