/* Reading a server's log file as it grows, is put aside and emptied. */
#include "tap.h"

#include <fcntl.h>
#include <jansson.h>
#include <time.h>

#include "lib/base/fd.h"
#include "cli/client/journal.h"
#include "cli/client/log_tail.h"

TAP_MAIN

static char dir[] = "/tmp/sandglass-log.XXXXXX";
static struct strbuf got;

static void on_line(void *arg, const char *line, size_t len)
{
    (void)arg;
    strbuf_add(&got, line, len);
    strbuf_addch(&got, '|');
}

static const char *path(const char *name)
{
    static char full[128];

    snprintf(full, sizeof(full), "%s/%s", dir, name);
    return full;
}

static void append(const char *text)
{
    int fd = open(path("server.log"), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);

    EXPECT(fd >= 0 && fd_write_all(fd, text, strlen(text)) == 0);
    close(fd);
}

/* As the warden does it. */
static void put_aside(void)
{
    char *text = NULL, next[128];
    size_t len;

    EXPECT(file_read(AT_FDCWD, path("server.log"), 1 << 20, &text, &len) == 0);
    snprintf(next, sizeof(next), "%s", path("server.log.next"));
    int fd = open(next, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    EXPECT(fd >= 0 && fd_write_all(fd, text, len) == 0);
    close(fd);
    EXPECT(rename(next, path("server.log.1")) == 0 && truncate(path("server.log"), 0) == 0);
    free(text);
}

static void expect(struct log_tail *t, const char *lines)
{
    strbuf_done(&got);
    strbuf_init(&got, 1 << 20);
    EXPECT(log_tail_read(t, on_line, NULL) == 0);
    EXPECT_STR(got.buf, lines);
}

static void begin(struct log_tail *t)
{
    snprintf(dir, sizeof(dir), "/tmp/sandglass-log.XXXXXX");
    EXPECT(mkdtemp(dir) != NULL);
    append("");
    EXPECT(log_tail_open(t, dir) == 0);
}

static void end(struct log_tail *t)
{
    log_tail_close(t);
    unlink(path("server.log"));
    unlink(path("server.log.1"));
    EXPECT(rmdir(dir) == 0);
    strbuf_done(&got);
    got = (struct strbuf){0};
}

TEST(lines_come_once_and_whole)
{
    struct log_tail t;

    begin(&t);
    expect(&t, "");
    append("one\ntw");
    expect(&t, "one|");
    append("o\n\nthree\n");
    expect(&t, "two||three|");
    expect(&t, "");
    end(&t);
}

TEST(what_was_put_aside_is_read_first)
{
    struct log_tail t;

    begin(&t);
    append("old\n");
    put_aside();
    append("new\n");
    expect(&t, "old|new|");
    expect(&t, "");
    end(&t);
}

TEST(nothing_is_lost_or_told_twice_when_it_is_emptied)
{
    struct log_tail t;

    begin(&t);
    append("one\n");
    expect(&t, "one|");
    append("two\n");
    put_aside();
    append("three\nfour\nfive\n"); /* more than there was: its size does not tell */
    expect(&t, "two|three|four|five|");
    put_aside();
    expect(&t, "");
    append("six\n");
    expect(&t, "six|");
    end(&t);
}

TEST(emptied_without_a_copy)
{
    struct log_tail t;

    begin(&t);
    append("one\ntwo\n");
    expect(&t, "one|two|");
    EXPECT(truncate(path("server.log"), 0) == 0);
    append("new\n");
    expect(&t, "new|");
    end(&t);
}

TEST(a_line_that_is_too_long_is_left_out)
{
    static char text[LOG_TAIL_LINE_MAX + 16];
    struct log_tail t;

    begin(&t);
    memset(text, 'x', sizeof(text) - 1);
    append("one\n");
    append(text);
    append("\ntwo\n");
    expect(&t, "one|two|");
    end(&t);
}

TEST(there_is_none)
{
    struct log_tail t;

    EXPECT(log_tail_open(&t, "/nowhere/at/all") == -ENOENT);
    log_tail_close(&t);
}

TEST(a_line_for_people)
{
    struct strbuf out;
    json_t *v = json_pack("{s:s,s:s,s:s,s:s,s:i,s:f,s:s}", "time", "2026-01-01T00:00:00.123Z",
                          "level", "error", "layer", "sandbox", "sandbox", "k3j", "status", 502,
                          "ms", 1.5, "message", "gone \033[31m");

    setenv("TZ", "UTC", 1);
    tzset();
    strbuf_init(&out, JOURNAL_LINE_MAX);
    journal_format_server(v, &out, false);
    EXPECT_STR(out.buf, "2026-01-01 00:00:00.123  ERROR  sandbox         gone ?[31m  sandbox=k3j"
                        "  status=502  ms=1.500");
    strbuf_reset(&out);
    journal_format_server(v, &out, true);
    EXPECT(strstr(out.buf, "\033[31mERROR\033[0m") != NULL);
    strbuf_done(&out);
    json_decref(v);
}
