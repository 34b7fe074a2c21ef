/* The list of files in a tar, and in what ways a tar lies. */
#include <sys/mman.h>

#include "pull/tar.h"
#include "tap.h"

#define BLOCK 512

static int file;

/* Adds a header and its contents. size: what the header says, if it is not the contents' length. */
static void add(const char *name, char type, const char *link, const char *contents,
                const char *size)
{
    char h[BLOCK] = {0}, zero[BLOCK] = {0};
    size_t len = strlen(contents);
    unsigned sum = 0;

    snprintf(h, 101, "%s", name);
    if (size)
        snprintf(h + 124, 12, "%s", size);
    else
        snprintf(h + 124, 12, "%011o", (unsigned)len & 0777777);
    h[156] = type;
    snprintf(h + 157, 100, "%s", link);
    memcpy(h + 257, "ustar\00000", 8);
    memset(h + 148, ' ', 8);
    for (size_t i = 0; i < BLOCK; i++)
        sum += (unsigned char)h[i];
    snprintf(h + 148, 8, "%06o", sum);
    EXPECT(write(file, h, BLOCK) == BLOCK && write(file, contents, len) == (ssize_t)len);
    if (len % BLOCK)
        EXPECT(write(file, zero, BLOCK - len % BLOCK) > 0);
}

static void begin(void)
{
    file = memfd_create("tar", MFD_CLOEXEC);
}

/* The code of the error, after which the file is closed. */
static int refused(struct sg_error *e)
{
    struct tar t;
    int r;

    *e = (struct sg_error){0};
    r = tar_open(&t, file, e);
    if (r == 0)
        tar_done(&t);
    close(file);
    return r;
}

TEST(files_and_links)
{
    uint64_t at, size;
    struct tar t;

    begin();
    add("./a/", '5', "", "", NULL);
    add("./a/one", '0', "", "first", NULL);
    add("b/layer.tar", '2', "../a/one", "", NULL);
    add("hard", '1', "a/one", "", NULL);
    add("abs", '2', "/a/one", "", NULL);
    add("././@LongLink", 'L', "", "a/long/name", NULL);
    add("a/lon", '0', "", "second", NULL);
    add("pax", 'x', "", "19 path=p/a/x/name\n", NULL);
    add("short", '0', "", "third", NULL);
    add("../out", '0', "", "never", NULL);
    add("loop", '2', "loop", "", NULL);
    EXPECT(tar_open(&t, file, NULL) == 0);
    EXPECT(tar_find(&t, "a/one", &at, &size) && at == 2 * BLOCK && size == 5);
    EXPECT(tar_find(&t, "b/layer.tar", &at, &size) && at == 2 * BLOCK);
    EXPECT(tar_find(&t, "hard", &at, &size) && at == 2 * BLOCK);
    EXPECT(tar_find(&t, "abs", &at, &size) && at == 2 * BLOCK);
    EXPECT(tar_find(&t, "a/long/name", &at, &size) && size == 6);
    EXPECT(tar_find(&t, "p/a/x/name", &at, &size) && size == 5);
    EXPECT(!tar_find(&t, "short", &at, &size) && !tar_find(&t, "../out", &at, &size));
    EXPECT(!tar_find(&t, "out", &at, &size) && !tar_find(&t, "loop", &at, &size));
    EXPECT(!tar_find(&t, "a", &at, &size));
    tar_done(&t);
    close(file);
}

TEST(broken_ones)
{
    char noise[BLOCK] = "#!/bin/sh";
    struct sg_error e;
    int ends[2];

    begin();
    EXPECT(refused(&e) == -EBADMSG && strstr(e.message, "no tar"));
    begin();
    EXPECT(write(file, noise, BLOCK) == BLOCK && refused(&e) == -EBADMSG);
    begin();
    add("a", '0', "", "", "77777777777");
    EXPECT(refused(&e) == -EBADMSG && strstr(e.message, "ends inside"));
    begin();
    add("a", '0', "", "", "-1");
    EXPECT(refused(&e) == -EBADMSG);
    begin();
    add("a", '0', "", "x", NULL);
    add("a", '0', "", "y", NULL);
    EXPECT(refused(&e) == -EBADMSG && strstr(e.message, "twice"));
    begin();
    add("p", 'x', "", "999 path=x\n", NULL);
    EXPECT(refused(&e) == -EBADMSG);
    begin();
    add("p", 'x', "", "10 path=x", NULL);
    EXPECT(refused(&e) == -EBADMSG);
    EXPECT(pipe(ends) == 0);
    file = ends[0];
    close(ends[1]);
    EXPECT(refused(&e) == -EINVAL && strstr(e.message, "must be a file"));
}

TAP_MAIN
