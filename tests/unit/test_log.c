/* The server's log: its two forms, what becomes of hostile texts, how many lines there are. */
#include <fcntl.h>
#include <jansson.h>
#include <sys/mman.h>
#include <unistd.h>

#include "lib/base/fd.h"
#include "lib/base/hidden.h"
#include "lib/log/log.h"
#include "lib/log/log_form.h"
#include "lib/log/log_rate.h"
#include "tap.h"

#define SECOND 1000000000ull

static const struct log_about everything = {.fault = FAULT_CLIENT,
                                            .sandbox_id = "k3j00000000000000000",
                                            .tenant = "t0000000000000000000",
                                            .request = "r0000000000000000000",
                                            .trace = "4bf92f3577b34da6a3ce929d0e0e4736",
                                            .method = "GET",
                                            .path = "/a b",
                                            .peer = "127.0.0.1",
                                            .status = 404,
                                            .ns = 1234567};

static struct log_record record(const char *message)
{
    return (struct log_record){
        .ms = 1767225600123, .level = LEVEL_WARN, .about.fault = FAULT_SANDBOX, .message = message};
}

static const char *text_of(const struct log_record *r)
{
    static struct strbuf out;

    strbuf_done(&out);
    strbuf_init(&out, LOG_LINE_MAX);
    log_form_text(r, &out);
    EXPECT(!out.truncated);
    return out.buf;
}

/* The caller's. */
static json_t *json_of(const struct log_record *r)
{
    AUTO(strbuf_done) struct strbuf out = {0};
    json_t *v;

    strbuf_init(&out, LOG_LINE_MAX);
    log_form_json(r, &out);
    EXPECT(!out.truncated && out.buf[out.len - 1] == '\n');
    EXPECT(strchr(out.buf, '\n') == out.buf + out.len - 1);
    v = json_loads(out.buf, 0, NULL);
    EXPECT(json_is_object(v));
    return v;
}

static const char *field(const json_t *v, const char *key)
{
    const char *s = json_string_value(json_object_get(v, key));

    return s ? s : "(none)";
}

TEST(plain_line_as_text)
{
    struct log_record r = record("paused");

    r.about.sandbox_id = "k3j";
    EXPECT_STR(text_of(&r),
               "time=2026-01-01T00:00:00.123Z level=warn layer=sandbox sandbox=k3j msg=paused\n");
}

TEST(all_fields_as_text)
{
    struct log_record r = record("no such sandbox");

    r.about = everything;
    EXPECT_STR(text_of(&r),
               "time=2026-01-01T00:00:00.123Z level=warn layer=client sandbox=k3j00000000000000000 "
               "tenant=t0000000000000000000 request=r0000000000000000000 "
               "trace=4bf92f3577b34da6a3ce929d0e0e4736 method=GET path=\"/a b\" peer=127.0.0.1 "
               "status=404 ms=1.234 msg=\"no such sandbox\"\n");
}

TEST(all_fields_as_json)
{
    struct log_record r = record("no such sandbox");

    r.about = everything;
    json_t *v = json_of(&r);
    EXPECT_STR(field(v, "time"), "2026-01-01T00:00:00.123Z");
    EXPECT_STR(field(v, "level"), "warn");
    EXPECT_STR(field(v, "layer"), "client");
    EXPECT_STR(field(v, "sandbox"), everything.sandbox_id);
    EXPECT_STR(field(v, "tenant"), everything.tenant);
    EXPECT_STR(field(v, "request"), everything.request);
    EXPECT_STR(field(v, "trace"), everything.trace);
    EXPECT_STR(field(v, "method"), "GET");
    EXPECT_STR(field(v, "path"), "/a b");
    EXPECT_STR(field(v, "message"), "no such sandbox");
    EXPECT(json_integer_value(json_object_get(v, "status")) == 404);
    EXPECT(json_real_value(json_object_get(v, "ms")) == 1.234);
    EXPECT(json_object_size(v) == 13);
    json_decref(v);
}

TEST(what_needs_quotes_has_them)
{
    static const char *const cases[][2] = {{"plain", "msg=plain\n"},
                                           {"a=b", "msg=\"a=b\"\n"},
                                           {"say \"no\"", "msg=\"say \\\"no\\\"\"\n"},
                                           {"back\\slash", "msg=\"back\\\\slash\"\n"},
                                           {"", "msg=-\n"},
                                           {"üñ", "msg=üñ\n"}};

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct log_record r = record(cases[i][0]);
        const char *at = strstr(text_of(&r), "msg=");
        EXPECT_STR(at ? at : "", cases[i][1]);
    }
}

TEST(nobody_forges_a_line_or_speaks_to_the_terminal)
{
    struct log_record r = record("one\ntime=now level=error\r\x1b[31m\x7f\t\xc2\x9b");
    json_t *v = json_of(&r);

    EXPECT_STR(field(v, "message"), "one?time=now level=error??[31m???");
    EXPECT(strstr(text_of(&r), "msg=\"one?time=now level=error??[31m???\"\n"));
    json_decref(v);
}

TEST(bytes_that_are_no_text_become_replacement_characters)
{
    struct log_record r = record("a\xff\xc3(\xed\xa0\x80z\xf0\x9f\x98");
    json_t *v = json_of(&r);

    EXPECT_STR(field(v, "message"),
               "a\xef\xbf\xbd\xef\xbf\xbd(\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbdz"
               "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd");
    json_decref(v);
}

TEST(a_line_has_an_end)
{
    static char quotes[8192];
    struct log_record r = record(quotes);
    struct log_about *a = &r.about;

    memset(quotes, '"', sizeof(quotes) - 1);
    a->sandbox_id = a->tenant = a->request = a->trace = a->method = a->path = a->peer = quotes;
    a->status = -2147483647;
    a->ns = UINT64_MAX;
    json_t *v = json_of(&r);
    size_t len = strlen(field(v, "message"));
    EXPECT(len > 1000 && strcmp(field(v, "message") + len - 3, "...") == 0);
    EXPECT(strlen(text_of(&r)) < LOG_LINE_MAX);
    json_decref(v);
}

TEST(what_is_cut_is_cut_between_characters)
{
    static char text[2048];
    struct log_record r = record(text);

    for (size_t i = 0; i + 3 < sizeof(text); i += 3)
        memcpy(text + i, "€", 3);
    json_t *v = json_of(&r);
    size_t len = strlen(field(v, "message"));
    EXPECT(len % 3 == 0 && !strstr(field(v, "message"), "\xef\xbf\xbd"));
    json_decref(v);
}

TEST(a_burst_passes_then_so_many_a_second)
{
    struct log_rate r = {0};
    unsigned n = 0;

    for (unsigned i = 0; i < 1000; i++)
        n += log_rate_take(&r, 10, false, SECOND);
    EXPECT(n == 10 * LOG_BURST);
    for (unsigned i = 0; i < 1000; i++)
        n += log_rate_take(&r, 10, false, 3 * SECOND);
    EXPECT(n == 10 * LOG_BURST + 20);
}

TEST(errors_have_a_share_of_their_own)
{
    struct log_rate r = {0};

    while (log_rate_take(&r, 10, false, SECOND))
        continue;
    EXPECT(log_rate_take(&r, 10, true, SECOND));
    EXPECT(!log_rate_take(&r, 10, false, SECOND));
}

TEST(without_a_rate_there_is_no_limit)
{
    struct log_rate r = {0};

    for (unsigned i = 0; i < 100000; i++)
        EXPECT(log_rate_take(&r, 0, false, SECOND));
    EXPECT(log_rate_due(&r, SECOND) == 0);
}

TEST(suppressed_lines_are_told_once_a_second)
{
    struct log_rate r = {0};

    for (unsigned i = 0; i < 8; i++)
        log_rate_take(&r, 1, false, SECOND);
    EXPECT(log_rate_due(&r, SECOND) == 3);
    log_rate_take(&r, 1, false, SECOND);
    EXPECT(log_rate_due(&r, SECOND) == 0);
    EXPECT(log_rate_due(&r, 2 * SECOND) == 1);
    EXPECT(log_rate_due(&r, 9 * SECOND) == 0);
}

/* What was written to the file, and lines of it. */
static char *file_of(int fd, size_t *ret_lines)
{
    char *text = NULL;
    size_t len = 0;

    EXPECT(lseek(fd, 0, SEEK_SET) == 0 && fd_read_all(fd, 1 << 20, &text, &len) == 0);
    *ret_lines = 0;
    for (const char *p = text; p && (p = strchr(p, '\n')); p++)
        ++*ret_lines;
    return text;
}

TEST(the_file_has_what_passes_level_and_rate)
{
    AUTO(close_p) int file = memfd_create("log", MFD_CLOEXEC), null = open("/dev/null", O_WRONLY);
    AUTO(close_p) int old = dup(STDERR_FILENO);
    uint64_t written, suppressed, written_before, suppressed_before;
    struct settings s;
    size_t lines;

    settings_init(&s);
    s.log_level = LEVEL_WARN;
    s.log_rate = 1;
    fcntl(file, F_SETFL, O_APPEND);
    dup2(null, STDERR_FILENO);
    log_set(&s);
    log_to_file(file);
    log_counts(&written_before, &suppressed_before);
    log_line(LEVEL_INFO, "not this one");
    for (int i = 0; i < 20; i++)
        log_line(LEVEL_WARN, "number %d", i);
    log_sandbox(LEVEL_ERROR, FAULT_SANDBOX, "k3j", "an error");
    log_to_file(-1);
    dup2(old, STDERR_FILENO);
    AUTO(free_p) char *text = file_of(file, &lines);
    EXPECT(!strstr(text, "not this one") && strstr(text, "\"message\":\"number 4\""));
    EXPECT(!strstr(text, "number 5") && strstr(text, "1 line suppressed"));
    EXPECT(strstr(text, "\"layer\":\"sandbox\",\"sandbox\":\"k3j\",\"message\":\"an error\""));
    EXPECT(lines == 5 + 1 + 1);
    log_counts(&written, &suppressed);
    EXPECT(written - written_before == 7 && suppressed - suppressed_before == 15);
}

/* A pipe that nobody reads, a file that takes nothing. */
TEST(nothing_waits_for_the_log)
{
    AUTO(close_p) int old = dup(STDERR_FILENO), full = open("/dev/full", O_WRONLY | O_CLOEXEC);
    struct settings s;
    int ends[2];

    EXPECT(pipe2(ends, O_CLOEXEC) == 0);
    settings_init(&s);
    s.log_rate = 0;
    log_set(&s);
    log_to_file(full);
    dup2(ends[1], STDERR_FILENO);
    alarm(20);
    for (int i = 0; i < 5000; i++)
        log_line(LEVEL_ERROR, "line %d: it is longer than a word, so that many of them fill a pipe",
                 i);
    alarm(0);
    dup2(old, STDERR_FILENO);
    log_to_file(-1);
    close(ends[0]);
    close(ends[1]);
}

TEST(a_hidden_setting_is_equal_to_itself_and_wiped)
{
    static struct hidden h;

    EXPECT(hidden_empty(&h) && hidden_set(&h, "hunter2", 7) && !hidden_empty(&h));
    EXPECT(hidden_equals(&h, "hunter2", 7) && !hidden_equals(&h, "hunter3", 7) &&
           !hidden_equals(&h, "hunter", 6));
    EXPECT_STR(hidden_reveal(&h), "hunter2");
    hidden_wipe(&h);
    EXPECT(hidden_empty(&h));
}

TAP_MAIN
