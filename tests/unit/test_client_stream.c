/* Streams of a process: frames cut anywhere, events, how a program ended, what is sent. */
#include "tap.h"

#include <fcntl.h>
#include <signal.h>

#include "lib/text/spout.h"
#include "cli/client/connect.h"
#include "cli/client/exec_event.h"
#include "cli/client/payload.h"

TAP_MAIN

/* ---- frames ---------------------------------------------------------------------------------- */

struct seen {
    struct strbuf text; /* "message|" each, "END:" before the last */
    int answer;
};

static int note(void *arg, bool end, const char *message, size_t len, struct sg_error *e)
{
    struct seen *s = arg;

    strbuf_addstr(&s->text, end ? "END:" : "");
    strbuf_add(&s->text, message, len);
    strbuf_addch(&s->text, '|');
    return s->answer < 0 ? err_set(e, SG_ERR_INTERNAL, s->answer, "no") : 0;
}

/* Gives the bytes in pieces of `piece`. */
static int feed(struct seen *s, const char *bytes, size_t len, size_t piece, struct sg_error *e)
{
    struct strbuf reader;
    int r = 0;

    strbuf_init(&s->text, 4096);
    strbuf_init(&reader, CONNECT_FRAME_MAX);
    for (size_t at = 0; r == 0 && at < len; at += piece)
        r = connect_feed(&reader, bytes + at, len - at < piece ? len - at : piece, note, s, e);
    strbuf_done(&reader);
    return r;
}

TEST(frames_in_pieces)
{
    static const char bytes[] = "\0\0\0\0\3abc"
                                "\0\0\0\0\0"
                                "\0\0\0\0\1x"
                                "\2\0\0\0\2{}";

    for (size_t piece = 1; piece < sizeof(bytes); piece++) {
        struct seen s = {0};

        EXPECT(feed(&s, bytes, sizeof(bytes) - 1, piece, NULL) == 0);
        EXPECT_STR(s.text.buf, "abc||x|END:{}|");
        strbuf_done(&s.text);
    }
}

TEST(unfinished_frames_are_kept)
{
    struct seen s = {0};

    EXPECT(feed(&s, "\0\0\0\0\5abc", 8, 8, NULL) == 0);
    EXPECT_STR(s.text.buf, "");
    strbuf_done(&s.text);
}

TEST(bad_frames)
{
    struct seen s = {0};
    struct sg_error e;

    EXPECT(feed(&s, "\1\0\0\0\1x", 6, 6, &e) == -EPROTO); /* compressed */
    EXPECT(feed(&s, "\x80\0\0\0\1x", 6, 1, &e) == -EPROTO);
    EXPECT(feed(&s, "\0\xff\xff\xff\xff", 5, 1, &e) == -EPROTO);
    EXPECT(strstr(e.message, "16 MiB") != NULL);
    EXPECT(feed(&s, "\0\1\0\0\1", 5, 5, &e) == -EPROTO); /* one byte too long */
    EXPECT(feed(&s, "\0\1\0\0\0", 5, 5, &e) == 0);
    EXPECT_STR(s.text.buf, "");
}

TEST(the_first_error_stops)
{
    struct seen s = {.answer = -EIO};
    struct sg_error e;

    EXPECT(feed(&s, "\0\0\0\0\1a\0\0\0\0\1b", 12, 12, &e) == -EIO);
    EXPECT_STR(s.text.buf, "a|");
    strbuf_done(&s.text);
}

TEST(frames_are_written)
{
    AUTO(strbuf_done) struct strbuf message = {0}, out = {0};

    strbuf_init(&message, 1000);
    strbuf_init(&out, 2000);
    for (int i = 0; i < 258; i++)
        strbuf_addch(&message, 'x');
    connect_write(&out, &message);
    EXPECT(out.len == 263);
    EXPECT(memcmp(out.buf, "\0\0\0\1\2xx", 7) == 0);
}

/* ---- events ---------------------------------------------------------------------------------- */

static struct exec_event event_of(const char *message, struct strbuf *data)
{
    struct exec_event event = {0};

    strbuf_init(data, 1024);
    EXPECT(exec_event_parse(message, strlen(message), &event, data, NULL) == 0);
    return event;
}

static void expect_data(const char *message, enum exec_event_kind kind, const char *text)
{
    AUTO(strbuf_done) struct strbuf data = {0};
    struct exec_event event = event_of(message, &data);

    EXPECT(event.kind == kind);
    EXPECT_STR(data.buf, text);
}

TEST(events)
{
    AUTO(strbuf_done) struct strbuf data = {0};
    struct exec_event event = event_of("{\"event\":{\"start\":{\"pid\":77}}}", &data);

    EXPECT(event.kind == EXEC_EVENT_START && event.pid == 77);
    expect_data("{\"event\":{\"data\":{\"stdout\":\"aGk=\"}}}", EXEC_EVENT_STDOUT, "hi");
    expect_data("{\"event\":{\"data\":{\"stderr\":\"aGk=\"}}}", EXEC_EVENT_STDERR, "hi");
    expect_data("{\"event\":{\"data\":{\"pty\":\"aGk\"}}}", EXEC_EVENT_STDOUT, "hi");
    expect_data("{\"event\":{\"data\":{}}}", EXEC_EVENT_OTHER, "");
    expect_data("{\"event\":{\"keepalive\":{}}}", EXEC_EVENT_OTHER, "");
    expect_data("{\"event\":{\"news\":{\"of\":1}}}", EXEC_EVENT_OTHER, "");
    expect_data("{}", EXEC_EVENT_OTHER, "");
    expect_data("[]", EXEC_EVENT_OTHER, "");
}

TEST(bad_events)
{
    static const char *const messages[] = {"", "{", "{\"event\":{\"data\":{\"stdout\":\"a b\"}}}",
                                           "{\"event\":{\"data\":{\"stdout\":\"\xff\"}}}"};
    AUTO(strbuf_done) struct strbuf data = {0};
    struct exec_event event;

    strbuf_init(&data, 64);
    for (size_t i = 0; i < ARRAY_SIZE(messages); i++)
        EXPECT(exec_event_parse(messages[i], strlen(messages[i]), &event, &data, NULL) == -EPROTO);
}

static void expect_status(const char *end, int status)
{
    AUTO(strbuf_done) struct strbuf data = {0};
    char message[256];

    snprintf(message, sizeof(message), "{\"event\":{\"end\":%s}}", end);
    struct exec_event event = event_of(message, &data);
    EXPECT(event.kind == EXEC_EVENT_END);
    if (event.exit_status != status)
        printf("# %s gives %d\n", end, event.exit_status);
    EXPECT(event.exit_status == status);
}

TEST(how_a_program_ended)
{
    expect_status("{\"exited\":true,\"status\":\"exit status 0\"}", 0);
    expect_status("{\"exitCode\":3,\"exited\":true,\"status\":\"exit status 3\"}", 3);
    expect_status("{\"exitCode\":\"255\",\"exited\":true}", 255);
    expect_status("{\"exitCode\":-1,\"status\":\"signal: killed\"}", 137);
    expect_status("{\"exitCode\":-1,\"exited\":false,\"status\":\"signal: terminated\"}", 143);
    expect_status("{\"exitCode\":-1,\"status\":\"signal: segmentation fault (core dumped)\"}",
                  128 + SIGSEGV);
    expect_status("{\"exitCode\":-1,\"status\":\"signal: signal 34\"}", 128 + 34);
    expect_status("{\"exitCode\":-1,\"status\":\"signal: of the times\"}", 128);
    expect_status("{\"exitCode\":99999999999}", 128);
    expect_status("{}", 0);
}

TEST(what_the_server_says_besides)
{
    AUTO(strbuf_done) struct strbuf data = strbuf_upto(64);

    EXPECT_STR(event_of("{\"event\":{\"end\":{\"exitCode\":-1,\"status\":\"signal: "
                        "killed\",\"error\":\"signal: killed\"}}}",
                        &data)
                   .why,
               "");
    struct exec_event event = event_of("{\"event\":{\"end\":{\"exitCode\":-1,\"status\":\"signal: "
                                       "killed\",\"error\":\"killed: the sandbox reached its "
                                       "memory limit of 512 MiB\"}}}",
                                       &data);
    EXPECT(event.exit_status == 137);
    EXPECT_STR(event.why, "killed: the sandbox reached its memory limit of 512 MiB");
}

TEST(words_for_signals)
{
    EXPECT(exec_event_signal("signal: user defined signal 1") == SIGUSR1);
    EXPECT(exec_event_signal("signal: killedx") == 0);
    EXPECT(exec_event_signal("signal: signal 999") == 0);
    EXPECT(exec_event_signal("exit status 1") == 0);
    EXPECT(exec_event_signal("") == 0);
}

TEST(the_end_of_a_stream)
{
    static const char deadline[] =
        "{\"error\":{\"code\":\"deadline_exceeded\",\"message\":\"too late\"}}";
    static const char strange[] = "{\"error\":{\"code\":7}}";
    struct sg_error e;

    EXPECT(exec_event_parse_last("{}", 2, &e) == 0);
    EXPECT(exec_event_parse_last("{\"metadata\":{}}", 15, &e) == 0);
    EXPECT(exec_event_parse_last(deadline, sizeof(deadline) - 1, &e) == -ETIMEDOUT);
    EXPECT_STR(e.message, "too late");
    EXPECT(exec_event_parse_last(strange, sizeof(strange) - 1, &e) == -EREMOTEIO);
    EXPECT(exec_event_parse_last("x", 1, &e) == -EPROTO);
}

/* ---- output ---------------------------------------------------------------------------------- */

#define PIECE      4000
#define QUEUE_HIGH (256u * 1024)
#define QUEUE_MAX  (QUEUE_HIGH + 32u * 1024 * 1024)

/* Takes up to `len` bytes out of the pipe; each must be the next of the count. */
static void drain(int fd, size_t len, uint64_t *at)
{
    static char buf[256 * 1024];
    ssize_t n = read(fd, buf, len < sizeof(buf) ? len : sizeof(buf));

    for (ssize_t i = 0; i < n; i++)
        EXPECT(buf[i] == (char)((*at)++ % 251));
}

TEST(a_slow_reader_gets_everything)
{
    struct spout o;
    uint64_t put = 0, got = 0;
    int fds[2];

    EXPECT(pipe2(fds, O_NONBLOCK) == 0);
    spout_init(&o, fds[1], QUEUE_MAX);
    while (put < 40u << 20 && !o.queue.truncated) {
        /* As the session does: nothing is added above the mark, and there is always a rest. */
        while (spout_waiting(&o) <= QUEUE_HIGH && !o.queue.truncated) {
            char piece[PIECE];

            for (size_t i = 0; i < sizeof(piece); i++)
                piece[i] = (char)(put++ % 251);
            spout_write(&o, piece, sizeof(piece));
        }
        spout_pump(&o);
        drain(fds[0], 100000, &got);
    }
    for (int i = 0; i < 100 && got < put; i++) {
        spout_pump(&o);
        drain(fds[0], SIZE_MAX, &got);
    }
    EXPECT(got == put);
    EXPECT(put >= 40u << 20);
    EXPECT(o.error == 0);
    spout_done(&o);
    close(fds[0]);
    close(fds[1]);
}

TEST(nobody_reads_any_more)
{
    struct spout o;
    int fds[2];

    signal(SIGPIPE, SIG_IGN);
    EXPECT(pipe(fds) == 0);
    close(fds[0]);
    spout_init(&o, fds[1], QUEUE_MAX);
    spout_write(&o, "lost", 4);
    EXPECT(o.error == EPIPE);
    EXPECT(spout_waiting(&o) == 0);
    spout_done(&o);
    close(fds[1]);
}

/* ---- what is sent ---------------------------------------------------------------------------- */

static void expect_start(char **command, const char *process)
{
    AUTO(strbuf_done) struct strbuf out = {0};
    struct env_list none = {0};
    struct payload_start b = {.command = command, .env = &none};
    char text[512];

    payload_start(&out, &b);
    snprintf(text, sizeof(text), "{\"process\":{%s},\"stdin\":false}", process);
    EXPECT_STR(out.buf, text);
}

TEST(commands)
{
    char ls[] = "ls", option[] = "-l a", line[] = "echo $HOME; ls";
    char *one[] = {ls, NULL}, *two[] = {ls, option, NULL}, *shell[] = {line, NULL};

    expect_start(one, "\"cmd\":\"ls\",\"args\":[]");
    expect_start(two, "\"cmd\":\"ls\",\"args\":[\"-l a\"]");
    expect_start(shell, "\"cmd\":\"/bin/bash\",\"args\":[\"-l\",\"-c\",\"echo $HOME; ls\"]");
}

TEST(a_start_with_everything)
{
    AUTO(strbuf_done) struct strbuf out = {0};
    AUTO(env_list_done) struct env_list env = {0};
    char sh[] = "sh", *command[] = {sh, NULL};
    struct payload_start b = {
        .command = command, .env = &env, .cwd = "/tmp", .pty = true, .rows = 24, .cols = 80};

    EXPECT(env_list_set(&env, "--env", "A=1=2", NULL) == 0);
    EXPECT(env_list_set(&env, "--env", "B=", NULL) == 0);
    payload_start(&out, &b);
    EXPECT_STR(out.buf,
               "{\"process\":{\"cmd\":\"sh\",\"args\":[],\"envs\":{\"A\":\"1=2\",\"B\":\"\"},"
               "\"cwd\":\"/tmp\"},\"pty\":{\"size\":{\"cols\":80,\"rows\":24}}}");
}

TEST(calls_about_a_process)
{
    AUTO(strbuf_done) struct strbuf out = {0};

    payload_input(&out, 7, false, "a\n", 2);
    EXPECT_STR(out.buf, "{\"process\":{\"pid\":7},\"input\":{\"stdin\":\"YQo=\"}}");
    strbuf_done(&out);
    payload_input(&out, 7, true, "a", 1);
    EXPECT_STR(out.buf, "{\"process\":{\"pid\":7},\"input\":{\"pty\":\"YQ==\"}}");
    strbuf_done(&out);
    payload_signal(&out, 7, SIGTERM);
    EXPECT_STR(out.buf, "{\"process\":{\"pid\":7},\"signal\":\"SIGNAL_SIGTERM\"}");
    strbuf_done(&out);
    payload_signal(&out, 7, SIGKILL);
    EXPECT_STR(out.buf, "{\"process\":{\"pid\":7},\"signal\":\"SIGNAL_SIGKILL\"}");
    strbuf_done(&out);
    payload_resize(&out, 7, 30, 100);
    EXPECT_STR(out.buf, "{\"process\":{\"pid\":7},\"pty\":{\"size\":{\"cols\":100,\"rows\":30}}}");
    strbuf_done(&out);
    payload_process(&out, 7);
    EXPECT_STR(out.buf, "{\"process\":{\"pid\":7}}");
}

TEST(a_create)
{
    static const char *const metadata[] = {"name=a", "k=v=w"};
    AUTO(strbuf_done) struct strbuf out = {0};
    AUTO(env_list_done) struct env_list env = {0};
    struct payload_create b = {.template = "base", .timeout_s = 300, .env = &env};

    payload_create(&out, &b);
    EXPECT_STR(out.buf, "{\"templateID\":\"base\",\"timeout\":300}");
    strbuf_done(&out);
    EXPECT(env_list_set(&env, "--env", "A=1", NULL) == 0);
    b.metadata = metadata;
    b.n_metadata = 2;
    b.auto_pause = b.secure = true;
    payload_create(&out, &b);
    EXPECT_STR(
        out.buf,
        "{\"templateID\":\"base\",\"timeout\":300,\"metadata\":{\"name\":\"a\",\"k\":\"v=w\"},"
        "\"envVars\":{\"A\":\"1\"},\"autoPause\":true,\"secure\":true}");
}
