/* sandglass secret: command lines, and where the value comes from. */
#include "tap.h"

#include <fcntl.h>

#include "lib/base/fd.h"
#include "cli/client/secret.h"

TAP_MAIN

#define ARGS_MAX 16

static struct secret_options options;

static int parse(const char *line, struct sg_error *e)
{
    static char text[512];
    static char *argv[ARGS_MAX + 1];
    int argc = 0;

    options = (struct secret_options){0};
    snprintf(text, sizeof(text), "secret %s", line);
    memset(argv, 0, sizeof(argv));
    for (char *p = text, *word; (word = strsep(&p, " ")) && argc < ARGS_MAX;)
        if (*word)
            argv[argc++] = word;
    return client_parse(&secret_verb, argc, argv, &options, e);
}

static void expect_taken(const char *line, size_t n_args)
{
    struct sg_error e = {0};

    EXPECT(parse(line, &e) == 0);
    EXPECT_STR(e.message, "");
    EXPECT(options.base.n_args == n_args);
}

static void expect_refused(const char *line, const char *words)
{
    struct sg_error e = {0};

    EXPECT(parse(line, &e) < 0);
    if (!strstr(e.message, words))
        printf("# secret %s: '%s' does not say '%s'\n", line, e.message, words);
    EXPECT(strstr(e.message, words) != NULL);
    EXPECT(!strstr(e.message, "hunter2"));
}

TEST(each_action_takes_its_arguments)
{
    expect_taken("ls", 0);
    expect_taken("ls -q --json", 0);
    expect_taken("show key", 1);
    expect_taken("rm a b c", 3);
    expect_taken("set key", 1);
    expect_taken("set --host a.test --host *.b.test --header x-key key --from-file f", 1);
    EXPECT(options.hosts.n == 2 && options.headers.n == 1);
    EXPECT_STR(options.hosts.entries[1], "*.b.test");
    EXPECT_STR(options.from_file, "f");
}

TEST(what_is_wrong_is_named)
{
    expect_refused("", "set, ls, show or rm");
    expect_refused("get key", "'get' is not");
    expect_refused("set", "set takes NAME");
    expect_refused("rm", "rm takes NAME");
    expect_refused("ls key", "ls takes no arguments");
    expect_refused("set a/b", "'a/b'");
    expect_refused("show key --host a.test", "--host is not an option of show");
    expect_refused("ls --from-file f", "--from-file is not an option of ls");
    expect_refused("set key --quiet", "--quiet is not an option of set");
    expect_refused("set key --host a,b", "--host");
    expect_refused("set key --from-file=", "--from-file");
}

TEST(a_value_is_no_argument_and_is_not_repeated)
{
    expect_refused("set key hunter2", "--from-file");
    expect_refused("set key -- hunter2", "standard input");
    expect_refused("set key --value hunter2", "--value");
}

/* ---- the value ------------------------------------------------------------------------------- */

static int read_from(const char *bytes, size_t len, struct strbuf *ret, struct sg_error *e)
{
    char path[] = "/tmp/sg-secret-XXXXXX";
    int fd = mkostemp(path, O_CLOEXEC);

    EXPECT(fd >= 0 && fd_write_all(fd, bytes, len) == 0);
    close(fd);
    int r = secret_value_read(path, "key", ret, e);
    unlink(path);
    return r;
}

static void expect_value(const char *bytes, const char *expected)
{
    struct strbuf value = {0};

    EXPECT(read_from(bytes, strlen(bytes), &value, NULL) == 0);
    EXPECT_STR(value.buf, expected);
    strbuf_wipe(&value);
}

TEST(one_lines_end_does_not_count)
{
    expect_value("hunter2", "hunter2");
    expect_value("hunter2\n", "hunter2");
    expect_value("hunter2\r\n", "hunter2");
    expect_value(" hunter2 \n", " hunter2 ");
}

static void expect_bad_value(const char *bytes, size_t len, const char *words)
{
    struct strbuf value = {0};
    struct sg_error e = {0};

    EXPECT(read_from(bytes, len, &value, &e) < 0);
    EXPECT(strstr(e.message, words) && !strstr(e.message, "hunter2"));
    strbuf_wipe(&value);
}

TEST(bad_values)
{
    AUTO(free_p) char *large = xcalloc(1, SECRET_VALUE_MAX + 2);
    struct strbuf value = {0};
    struct sg_error e = {0};

    expect_bad_value("", 0, "empty");
    expect_bad_value("\n", 1, "empty");
    expect_bad_value("hunter2\nhunter2\n", 16, "several lines");
    expect_bad_value("hunter2\n\n", 9, "several lines");
    expect_bad_value("hunter2\0x", 9, "NUL");
    memset(large, 'x', SECRET_VALUE_MAX + 1);
    expect_bad_value(large, SECRET_VALUE_MAX + 1, "64 KiB");
    large[SECRET_VALUE_MAX] = '\n';
    EXPECT(read_from(large, SECRET_VALUE_MAX + 1, &value, &e) == 0);
    EXPECT(value.len == SECRET_VALUE_MAX);
    strbuf_wipe(&value);
    EXPECT(secret_value_read("/nowhere/file", "key", &value, &e) == -ENOENT);
    EXPECT(strstr(e.message, "/nowhere/file"));
    strbuf_wipe(&value);
}
