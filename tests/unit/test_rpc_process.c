/* The process service, as a client sees it, with a real agent behind. */
#include "front/core/output_filter.h"
#include "envd_host.h"

static uint32_t started_pid(struct client *c)
{
    client_wait(c, "{\"event\":{\"start\":{\"pid\":");
    const char *at = memmem(c->got.buf, c->got.len, "\"pid\":", 6);

    return at ? (uint32_t)strtoul(at + 6, NULL, 10) : 0;
}

#define START "/process.Process/Start"
#define SH(script) \
    "{\"process\":{\"cmd\":\"/bin/sh\",\"args\":[\"-c\",\"" script "\"]},\"stdin\":false}"

/* ---- process --------------------------------------------------------------------------------- */

TEST(a_process_from_start_to_end)
{
    begin();
    expect_stream(START, SH("echo hi; echo no >&2; exit 3"),
                  TEXTS("{\"event\":{\"start\":{\"pid\":", "{\"event\":{\"data\":{\"std",
                        "{\"event\":{\"end\":{\"exitCode\":3,\"exited\":true,\"status\":\"exit "
                        "status 3\",\"error\":\"exit status 3\"}}}"));
    EXPECT(has(&client, "{\"event\":{\"data\":{\"stdout\":\"aGkK\"}}}"));
    EXPECT(has(&client, "{\"event\":{\"data\":{\"stderr\":\"bm8K\"}}}"));
    expect_stream(START, SH("exit 0"),
                  TEXTS("{\"event\":{\"end\":{\"exited\":true,\"status\":\"exit status 0\"}}}"));
    expect_stream(START, SH("kill -KILL $$"),
                  TEXTS("{\"event\":{\"end\":{\"exitCode\":-1,\"status\":\"signal: "
                        "killed\",\"error\":\"signal: killed\"}}}"));
    expect_stream(START, SH("kill -SEGV $$"), TEXTS("\"status\":\"signal: segmentation fault\""));
    end();
}

TEST(a_process_that_the_memory_limit_ended)
{
    struct view_fds view = VIEW_NONE;

    view.groups = "/tmp";
    host_view = &view;
    begin();
    host_view = NULL;
    expect_stream(START,
                  SH("echo 536870912 >/tmp/memory.max; echo oom 1 >/tmp/memory.events; "
                     "echo oom_kill 1 >>/tmp/memory.events; kill -KILL $$"),
                  TEXTS("{\"event\":{\"end\":{\"exitCode\":-1,\"status\":\"signal: "
                        "killed\",\"error\":\"killed: the sandbox reached its memory limit of 512 "
                        "MiB\"}}}"));
    end();
}

TEST(environment_user_and_directory)
{
    begin();
    expect_stream(
        START,
        "{\"process\":{\"cmd\":\"/bin/sh\",\"args\":[\"-c\",\"printf %s,%s,%s,%s,%s,%s,%s "
        "$GLOBAL $BOTH $OWN $HOME $E2B_SANDBOX $E2B_SANDBOX_ID $PWD\"],\"envs\":{\"OWN\":"
        "\"2\",\"BOTH\":\"request\"},\"cwd\":\"/tmp\"}}",
        /* 1,request,2,/home/user,true,abcdefghij0123456789,/tmp */
        TEXTS("\"stdout\":\"MSxyZXF1ZXN0LDIsL2hvbWUvdXNlcix0cnVlLGFiY2RlZmdoaWowMTIzNDU2Nz"
              "g5LC90bXA=\""));
    extra = "Authorization: Basic cm9vdDo=\r\n"; /* root: */
    expect_stream(START, SH("printf %s $(id -u)$PWD"),
                  TEXTS("\"stdout\":\"MC9yb290\"")); /* 0/root */
    extra = "Authorization: Basic bm8tb25lOg==\r\n"; /* no-one: */
    expect_stream(START, SH("id"),
                  TEXTS("{\"error\":{\"code\":\"unauthenticated\",\"message\":\"invalid username: "
                        "'no-one'\"}}"));
    extra = "Authorization: Basic Li4vcm9vdDo=\r\n"; /* ../root: */
    expect_unary("/filesystem.Filesystem/Stat", "{\"path\":\"/\"}", 401,
                 "{\"code\":\"unauthenticated\",\"message\":\"invalid username: '../root'\"}");
    extra = "Authorization: Bearer x\r\n"; /* names nobody */
    expect_stream(START, SH("printf %s $(id -un)"), TEXTS("\"exited\":true"));
    extra = "";
    end();
}

TEST(starts_that_fail)
{
    begin();
    expect_stream(
        START, "{\"process\":{\"cmd\":\"/bin/true\",\"cwd\":\"/nowhere\"}}",
        TEXTS("{\"error\":{\"code\":\"invalid_argument\",\"message\":\"cwd '/nowhere' does "
              "not exist\"}}"));
    expect_stream(START, "{\"process\":{\"cmd\":\"/bin/true\",\"cwd\":\"sub\"}}",
                  TEXTS("cwd '/home/user/sub' does not exist"));
    expect_stream(START, "{\"process\":{\"cmd\":\"/bin/true\",\"cwd\":\"~root\"}}",
                  TEXTS("\"invalid_argument\"", "cannot expand"));
    expect_stream(START, "{\"process\":{\"cmd\":\"/no/such/program\"}}",
                  TEXTS("\"invalid_argument\"", "error starting process '/no/such/program': "));
    expect_stream(START, "{\"process\":{\"cmd\":\"/etc/passwd\"}}", TEXTS("\"invalid_argument\""));
    expect_stream(START, "{}", TEXTS("\"invalid_argument\""));
    expect_stream(START, "{\"process\":{\"cmd\":\"/bin/true\",\"envs\":{\"\":\"x\"}}}",
                  TEXTS("\"invalid_argument\""));
    end();
}

TEST(time_limit_of_a_process)
{
    begin();
    extra = "Connect-Timeout-Ms: 200\r\n";
    expect_stream(
        START, SH("echo on; sleep 60"),
        TEXTS("{\"event\":{\"start\"", "b24K", "{\"error\":{\"code\":\"deadline_exceeded\""));
    EXPECT(!memmem(client.got.buf, client.got.len, "\"end\":", 6));
    extra = "";
    end();
}

TEST(list_tag_signal)
{
    static const char config[] =
        "{\"cmd\":\"/bin/sleep\",\"args\":[\"60\"],\"envs\":{\"A\":\"b=c\"},"
        "\"cwd\":\"/\"}";
    struct client stream;
    char text[512];

    begin();
    client_open(&stream, &host);
    expect_unary("/process.Process/List", "{}", 200, "{}");
    snprintf(text, sizeof(text), "{\"process\":%s,\"tag\":\"my tag\"}", config);
    stream_begin(&stream, START, text);
    uint32_t pid = started_pid(&stream);
    EXPECT(pid > 0);
    snprintf(text, sizeof(text), "{\"processes\":[{\"config\":%s,\"pid\":%u,\"tag\":\"my tag\"}]}",
             config, pid);
    expect_unary("/process.Process/List", "{}", 200, text);
    expect_unary("/process.Process/SendSignal",
                 "{\"process\":{\"tag\":\"other\"},\"signal\":\"SIGNAL_SIGTERM\"}", 404,
                 "{\"code\":\"not_found\",\"message\":\"process with tag");
    expect_unary("/process.Process/SendSignal",
                 "{\"process\":{\"pid\":999999},\"signal\":\"SIGNAL_SIGKILL\"}", 404,
                 "process with pid 999999 not found");
    expect_unary("/process.Process/SendSignal", "{\"process\":{\"pid\":0},\"signal\":9}", 404,
                 "not_found");
    expect_unary("/process.Process/SendSignal", "{\"signal\":9}", 400, "invalid_argument");
    expect_unary("/process.Process/SendSignal", "{\"process\":{\"tag\":\"my tag\"}}", 501,
                 "unimplemented");
    expect_unary("/process.Process/SendSignal",
                 "{\"process\":{\"tag\":\"my tag\"},\"signal\":\"SIGNAL_SIGTERM\"}", 200, "{}");
    EXPECT(stream_ended(&stream));
    EXPECT(has(&stream, "\"status\":\"signal: terminated\""));
    expect_unary("/process.Process/List", "{}", 200, "{}");
    client_close(&stream);
    end();
}

TEST(input_and_its_end)
{
    struct client stream;
    char text[512];

    begin();
    client_open(&stream, &host);
    stream_begin(&stream, START, "{\"process\":{\"cmd\":\"/bin/cat\"}}");
    uint32_t pid = started_pid(&stream);
    snprintf(text, sizeof(text), "{\"process\":{\"pid\":%u},\"input\":{\"stdin\":\"aGk=\"}}", pid);
    expect_unary("/process.Process/SendInput", text, 200, "{}");
    EXPECT(client_wait(&stream, "{\"stdout\":\"aGk=\"}"));
    snprintf(text, sizeof(text), "{\"process\":{\"pid\":%u},\"input\":{\"pty\":\"aGk=\"}}", pid);
    expect_unary("/process.Process/SendInput", text, 500, "{\"code\":\"internal\"");
    snprintf(text, sizeof(text), "{\"process\":{\"pid\":%u}}", pid);
    expect_unary("/process.Process/SendInput", text, 400, "invalid_argument");
    snprintf(text, sizeof(text),
             "{\"process\":{\"pid\":%u},\"pty\":{\"size\":{\"cols\":9,\"rows\":9}}}", pid);
    expect_unary("/process.Process/Update", text, 500, "tty not assigned");
    snprintf(text, sizeof(text), "{\"process\":{\"pid\":%u}}", pid);
    expect_unary("/process.Process/CloseStdin", text, 200, "{}");
    EXPECT(stream_ended(&stream));
    EXPECT(has(&stream, "exit status 0"));
    expect_unary("/process.Process/CloseStdin", text, 404, "not_found");
    client_close(&stream);

    client_open(&stream, &host);
    stream_begin(&stream, START, SH("sleep 60"));
    pid = started_pid(&stream);
    snprintf(text, sizeof(text), "{\"process\":{\"pid\":%u},\"input\":{\"stdin\":\"aGk=\"}}", pid);
    expect_unary("/process.Process/SendInput", text, 500, "error writing to stdin");
    client_close(&stream);
    end();
}

TEST(input_as_a_stream)
{
    static const char more[] = "{\"data\":{\"input\":{\"stdin\":\"aGkK\"}}}";
    AUTO(strbuf_done) struct strbuf body = {0};
    struct client stream;
    char text[256];

    begin();
    client_open(&stream, &host);
    stream_begin(&stream, START, "{\"process\":{\"cmd\":\"/usr/bin/head\",\"args\":[\"-n3\"]}}");
    uint32_t pid = started_pid(&stream);
    strbuf_init(&body, 4096);
    snprintf(text, sizeof(text), "{\"start\":{\"process\":{\"pid\":%u}}}", pid);
    const char *const messages[] = {text, more, "{\"keepalive\":{}}", more, more};
    for (size_t i = 0; i < ARRAY_SIZE(messages); i++) {
        size_t len = strlen(messages[i]);
        char header[5] = {0, 0, 0, (char)(len >> 8), (char)len};
        strbuf_add(&body, header, 5);
        strbuf_add(&body, messages[i], len);
    }
    send_post(&client, "/process.Process/StreamInput", "application/connect+json", body.buf,
              body.len);
    EXPECT(stream_ended(&client));
    EXPECT(stream_ended(&stream));
    EXPECT(has(&stream, "exit status 0"));
    stream_begin(&client, "/process.Process/StreamInput", more);
    EXPECT(stream_ended(&client));
    EXPECT(has(&client, "{\"error\":{\"code\":\"invalid_argument\""));
    client_close(&stream);
    end();
}

/* More than pipe, window and buffers hold: it goes in as fast as the program reads. */
TEST(a_large_input_waits_for_its_reader)
{
    AUTO(strbuf_done) struct strbuf body = {0};
    struct client stream;

    begin();
    client_open(&stream, &host);
    stream_begin(
        &stream, START,
        "{\"process\":{\"cmd\":\"/bin/sh\",\"args\":[\"-c\",\"sleep 0.3; head -c 2000000 | wc "
        "-c\"]}}");
    uint32_t pid = started_pid(&stream);
    strbuf_init(&body, 4u << 20);
    strbuf_addf(&body, "{\"process\":{\"pid\":%u},\"input\":{\"stdin\":\"", pid);
    for (size_t i = 0; i < 2000000 / 3 + 1; i++)
        strbuf_add(&body, "eHh4", 4);
    strbuf_addstr(&body, "\"}}");
    EXPECT(unary("/process.Process/SendInput", body.buf) == 200 ||
           strstr(client.got.buf, "no longer reads")); /* the last byte is one too many */
    EXPECT(stream_ended(&stream));
    EXPECT(has(&stream, "{\"stdout\":\"MjAwMDAwMAo=\"}")); /* 2000000 */
    client_close(&stream);
    end();
}

TEST(a_terminal)
{
    struct client stream;
    char text[512];

    begin();
    client_open(&stream, &host);
    stream_begin(
        &stream, START,
        "{\"process\":{\"cmd\":\"/bin/sh\"},\"pty\":{\"size\":{\"cols\":80,\"rows\":24}}}");
    uint32_t pid = started_pid(&stream);
    EXPECT(client_wait(&stream, "{\"pty\":\""));
    snprintf(text, sizeof(text),
             "{\"process\":{\"pid\":%u},\"pty\":{\"size\":{\"cols\":33,\"rows\":11}}}", pid);
    expect_unary("/process.Process/Update", text, 200, "{}");
    snprintf(text, sizeof(text), "{\"process\":{\"pid\":%u},\"input\":{\"stdin\":\"aGk=\"}}", pid);
    expect_unary("/process.Process/SendInput", text, 500, "error writing to stdin");
    snprintf(text, sizeof(text), "{\"process\":{\"pid\":%u}}", pid);
    expect_unary("/process.Process/CloseStdin", text, 500, "error closing stdin");
    /* stty size | tr ' ' x; exit */
    snprintf(text, sizeof(text),
             "{\"process\":{\"pid\":%u},\"input\":{\"pty\":"
             "\"c3R0eSBzaXplID4gL3RtcC9zaXplOyBleGl0IDUK\"}}",
             pid);
    expect_unary("/process.Process/SendInput", text, 200, "{}");
    EXPECT(stream_ended(&stream));
    EXPECT(has(&stream, "exit status 5"));
    expect_stream(START, SH("cat /tmp/size"), TEXTS("MTEgMzMK")); /* 11 33 */
    client_close(&stream);
    end();
}

TEST(connect_to_a_process_that_runs_or_ran)
{
    struct client first, second;
    char text[256];

    begin();
    client_open(&first, &host);
    client_open(&second, &host);
    stream_begin(
        &first, START,
        "{\"process\":{\"cmd\":\"/bin/sh\",\"args\":[\"-c\",\"read x; echo got $x; exit 4\"]},"
        "\"tag\":\"t\"}");
    uint32_t pid = started_pid(&first);
    client_close(&first); /* which does not end it */
    for (int i = 0; i < 20; i++)
        host_turn(&host);
    stream_begin(&second, "/process.Process/Connect", "{\"process\":{\"tag\":\"t\"}}");
    EXPECT(started_pid(&second) == pid);
    snprintf(text, sizeof(text), "{\"process\":{\"pid\":%u},\"input\":{\"stdin\":\"YQo=\"}}", pid);
    expect_unary("/process.Process/SendInput", text, 200, "{}");
    EXPECT(stream_ended(&second));
    EXPECT(has(&second, "{\"stdout\":\"Z290IGEK\"}"));
    EXPECT(has(&second, "exit status 4"));
    /* how it ended is known for a while */
    snprintf(text, sizeof(text), "{\"process\":{\"pid\":%u}}", pid);
    expect_stream("/process.Process/Connect", text, TEXTS("\"start\":{\"pid\":", "exit status 4"));
    expect_stream(
        "/process.Process/Connect", "{\"process\":{\"pid\":77777}}",
        TEXTS("{\"error\":{\"code\":\"not_found\",\"message\":\"process with pid 77777 not "
              "found\"}}"));
    /* its end was logged though nobody who started it was there */
    bool logged = false;
    for (size_t i = 0; i < sandbox_log_count(&sandbox->log); i++)
        logged |= strstr(sandbox_log_get(&sandbox->log, i)->text, "ended: exit status 4") != NULL;
    EXPECT(logged);
    client_close(&second);
    end();
}

TEST(a_slow_client_stops_the_process)
{
    struct client slow;
    char text[256];

    begin();
    client_open(&slow, &host);
    stream_begin(&slow, START, SH("yes | head -c 15000000; touch /tmp/written"));
    started_pid(&slow);
    for (int i = 0; i < 100; i++)
        host_turn(&host);
    /* what is in all buffers is far less than what it wants to write */
    expect_unary("/filesystem.Filesystem/Stat", "{\"path\":\"/tmp/written\"}", 404, "not_found");
    snprintf(text, sizeof(text), "{\"path\":\"/tmp\"}");
    expect_unary("/filesystem.Filesystem/ListDir", text, 200, "{}");
    EXPECT(stream_ended(&slow));
    EXPECT(slow.got.len > 20000000);
    expect_unary("/filesystem.Filesystem/Stat", "{\"path\":\"/tmp/written\"}", 200, "written");
    client_close(&slow);
    end();
}

TEST(output_is_logged_and_no_value_of_a_variable_is)
{
    AUTO(strbuf_done) struct strbuf all = {0};

    begin();
    expect_stream(
        START,
        "{\"process\":{\"cmd\":\"/bin/sh\",\"args\":[\"-c\",\"echo visible\"],\"envs\":{\"K\":"
        "\"secret-value\"}}}",
        TEXTS("exit status 0"));
    strbuf_init(&all, 65536);
    for (size_t i = 0; i < sandbox_log_count(&sandbox->log); i++)
        strbuf_addf(&all, "%s\n", sandbox_log_get(&sandbox->log, i)->text);
    EXPECT(strstr(all.buf, "started: /bin/sh -c echo visible") != NULL);
    EXPECT(strstr(all.buf, "\nvisible\n") != NULL);
    EXPECT(strstr(all.buf, "ended: exit status 0") != NULL);
    EXPECT(strstr(all.buf, "secret-value") == NULL);
    end();
}

/* "[EMAIL]" and not what was written, to the client and to the log; a prompt comes by itself. */
TEST(output_is_sanitised_if_the_server_says_so)
{
    AUTO(strbuf_done) struct strbuf all = {0};
    struct sg_error e;

    begin();
    front.settings.sanitise_streams = SETTINGS_ENFORCE;
    EXPECT(output_filter_set_patterns(&front, "", &e) == 0);
    expect_stream(
        START, SH("printf ann@exam; printf ple.com; printf 'x 10.1.2.3' >&2"),
        TEXTS("{\"data\":{\"stdout\":\"W0VNQUlMXQ==\"}}", "{\"event\":{\"end\":{\"exited\":true"));
    EXPECT(has(&client, "{\"data\":{\"stderr\":\"eCBbSVBfQUREUkVTU10=\"}}"));
    strbuf_init(&all, 65536);
    for (size_t i = 0; i < sandbox_log_count(&sandbox->log); i++)
        strbuf_addf(&all, "%s\n", sandbox_log_get(&sandbox->log, i)->text);
    EXPECT(strstr(all.buf, "[EMAIL]") && !strstr(all.buf, "\nann@example.com"));
    expect_stream(
        START, SH("printf 'name: '; sleep 0.2; echo x"),
        TEXTS("{\"data\":{\"stdout\":\"bmFtZTog\"}}", "{\"data\":{\"stdout\":\"eAo=\"}}"));
    front.settings.sanitise_streams = SETTINGS_OFF;
    expect_stream(START, SH("echo ann@example.com"), TEXTS("YW5uQGV4YW1wbGUuY29tCg=="));
    end();
}

TEST(the_agent_goes_away)
{
    struct client stream;

    begin();
    client_open(&stream, &host);
    stream_begin(&stream, START, SH("sleep 60"));
    EXPECT(started_pid(&stream) > 0);
    link_drop_calls(sandbox->link);
    EXPECT(client_wait_end(&stream)); /* without an end: it is not known how the process is */
    EXPECT(!memmem(stream.got.buf, stream.got.len, "\2\0\0\0", 4));
    client_close(&stream);
    /* before anything was sent there is an answer */
    link_free(sandbox->link);
    sandbox->link = NULL;
    stream_begin(&client, START, SH("true"));
    EXPECT(client_wait(&client, "The sandbox was not found"));
    EXPECT(client_status(&client) == 502);
    expect_unary("/filesystem.Filesystem/Stat", "{\"path\":\"/\"}", 502,
                 "{\"sandboxId\":\"abcdefghij0123456789\",\"message\":\"The sandbox was not "
                 "found\",\"code\":502}");
    end();
}

TAP_MAIN
