/* What the prompt makes of a server's answer: events from bytes that come in pieces, what reaches a
 * terminal, colours of tracebacks, pictures. */
#include "tap.h"

#include <fcntl.h>
#include <png.h>
#include <pty.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "lib/text/base64.h"
#include "lib/base/fd.h"
#include "cli/client/repl_event.h"
#include "cli/client/repl_filter.h"
#include "cli/client/repl_image.h"
#include "cli/client/repl_show.h"
#include "cli/client/repl_sixel.h"
#include "cli/client/repl_traceback.h"

TAP_MAIN

/* ---- events ---------------------------------------------------------------------------------- */

static int note(void *arg, const struct repl_event *event, struct sg_error *e)
{
    struct strbuf *seen = arg;
    struct repl_text t = repl_event_text(event, "text");

    strbuf_addf(seen, "%d:", (int)event->kind);
    strbuf_add(seen, t.text, t.len);
    strbuf_addf(seen, "%s|", event->main ? "!" : "");
    return t.len == 4 && memcmp(t.text, "stop", 4) == 0
               ? err_set(e, SG_ERR_INTERNAL, -ECANCELED, "stopped")
               : 0;
}

static int feed(struct strbuf *seen, const char *bytes, size_t len, size_t piece,
                struct sg_error *e)
{
    struct strbuf events;
    int r = 0;

    strbuf_init(seen, 4096);
    strbuf_init(&events, REPL_LINE_MAX);
    for (size_t at = 0; r == 0 && at < len; at += piece)
        r = repl_events_feed(&events, bytes + at, len - at < piece ? len - at : piece, note, seen,
                             e);
    strbuf_done(&events);
    return r;
}

TEST(events_in_pieces)
{
    static const char bytes[] = "{\"type\":\"number_of_executions\",\"execution_count\":3}\n"
                                "{\"type\":\"stdout\",\"text\":\"a\\nb\"}\n"
                                "\n"
                                "{\"type\":\"stderr\",\"text\":\"\\u00e9\"}\n"
                                "{\"type\":\"keepalive\"}\n"
                                "{\"type\":\"result\",\"is_main_result\":true,\"text\":\"4\"}\n"
                                "{\"type\":\"result\",\"is_main_result\":false}\n"
                                "{\"type\":\"error\",\"name\":\"E\"}\n"
                                "{\"type\":\"end_of_execution\"}\n";

    for (size_t piece = 1; piece < sizeof(bytes); piece += 7) {
        AUTO(strbuf_done) struct strbuf seen = {0};

        EXPECT(feed(&seen, bytes, sizeof(bytes) - 1, piece, NULL) == 0);
        EXPECT_STR(seen.buf, "1:|2:a\nb|3:\xc3\xa9|0:|4:4!|4:|5:|6:|");
    }
}

TEST(hostile_events)
{
    static const struct {
        const char *bytes;
        int result;
        const char *seen;
    } cases[] = {
        {"not json\n", -EPROTO, ""},
        {"[]\n", -EPROTO, ""},
        {"\"stdout\"\n", -EPROTO, ""},
        {"null\n", -EPROTO, ""},
        {"{}\n", 0, "0:|"},
        {"{\"type\":7}\n", 0, "0:|"},
        {"{\"type\":\"\"}\n", 0, "0:|"},
        {"{\"type\":\"stdout\",\"text\":7}\n", 0, "2:|"},
        {"{\"type\":\"stdout\",\"text\":\"\xff\"}\n", -EPROTO, ""},
        {"{\"type\":\"result\",\"is_main_result\":\"true\",\"text\":[1]}\n", 0, "4:|"},
        {"{\"type\":\"number_of_executions\",\"execution_count\":-1e300}\n", 0, "1:|"},
        {"{\"type\":\"stdout\",\"text\":\"stop\"}\n{}\n", -ECANCELED, "2:stop|"},
        {"{\"type\":\"stdout\",\"text\":\"no line end\"}", 0, ""},
    };

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        AUTO(strbuf_done) struct strbuf seen = {0};
        struct sg_error e = {0};

        EXPECT(feed(&seen, cases[i].bytes, strlen(cases[i].bytes), 3, &e) == cases[i].result);
        EXPECT_STR(seen.buf, cases[i].seen);
    }
}

TEST(a_line_that_never_ends)
{
    struct strbuf events;
    struct sg_error e = {0};
    AUTO(free_p) char *piece = xcalloc(1, 1 << 20);
    size_t n = 0;
    int r = 0;

    memset(piece, 'x', 1 << 20);
    strbuf_init(&events, REPL_LINE_MAX);
    for (; r == 0 && n < 1000; n++)
        r = repl_events_feed(&events, piece, 1 << 20, note, NULL, &e);
    EXPECT(r == -EPROTO);
    EXPECT(n == 129);
    strbuf_done(&events);
}

/* ---- the terminal ---------------------------------------------------------------------------- */

static void filtered(const char *text, const char *expected)
{
    size_t len = strlen(text);

    for (size_t piece = 1; piece <= len; piece++) {
        AUTO(strbuf_done) struct strbuf out = {0};
        struct repl_filter f = {0};

        strbuf_init(&out, 4096);
        for (size_t at = 0; at < len; at += piece)
            repl_filter(&f, &out, text + at, len - at < piece ? len - at : piece);
        EXPECT_STR(out.buf, expected);
    }
}

TEST(text_colours_and_moves_pass)
{
    filtered("plain \xc3\xa9\xe2\x82\xac\xc2\xa9 text\r\n\t\b\a",
             "plain \xc3\xa9\xe2\x82\xac\xc2\xa9 text\r\n\t\b\a");
    filtered("\033[1;31mred\033[0m\033[38:2::1:2:3m", "\033[1;31mred\033[0m\033[38:2::1:2:3m");
    filtered("\033[2K\033[1A\033[10;20H\033[?25l\033[?25h",
             "\033[2K\033[1A\033[10;20H\033[?25l\033[?25h");
}

TEST(what_drives_the_terminal_does_not)
{
    filtered("a\033]0;title\ab", "ab");
    filtered("a\033]52;c;AAAA\033\\b", "ab");         /* the clipboard */
    filtered("a\033P$q\"p\033\\b", "ab");             /* a question */
    filtered("a\033_Ga=T;AAAA\033\\b", "ab");         /* a picture */
    filtered("a\033[c\033[6n\033[>q\033[21tb", "ab"); /* questions */
    filtered("a\033[?1049h\033[?2004h\033[?1000hb", "ab");
    filtered("a\033c\033(0\033Zb", "ab"); /* reset, character set */
    filtered("a\x7f\001\002\x0e"
             "b",
             "ab");
    filtered("a\xc2\x9d"
             "0;title\xc2\x9c"
             "b\xc2\x9b"
             "31mc\xc2\x85",
             "ab\033[31mc");
    filtered("a\033]0;title\033[31mb", "a\033[31mb"); /* given up by another sequence */
    filtered("\033[11111111111111111111111111111111111111111111111111111111111111111111111m", "");
    filtered("\033[31\n", ""); /* cut by a control character */
}

static void traced(const char *text, const char *name, const char *expected)
{
    AUTO(strbuf_done) struct strbuf coloured = {0}, plain = {0};

    strbuf_init(&coloured, 4096);
    strbuf_init(&plain, 4096);
    repl_traceback(&coloured, text, name, true);
    repl_traceback(&plain, text, name, false);
    EXPECT_STR(coloured.buf, expected);
    EXPECT(strncmp(plain.buf, text, strlen(text)) == 0 && plain.len == strlen(text) + 1);
}

TEST(tracebacks)
{
    traced("Traceback (most recent call last):\n  File \"<cell 1>\", line 12, in f\n    1/0\n"
           "ZeroDivisionError: division by zero",
           "ZeroDivisionError",
           "Traceback (most recent call last):\n  File \033[36m\"<cell 1>\"\033[0m, line "
           "\033[32m12\033[0m, in f\n    1/0\n\033[1;31mZeroDivisionError\033[0m: division by "
           "zero\n");
    traced("Cell In[1], line 1\n----> 1 x", "NameError",
           "Cell \033[36mIn[1]\033[0m, line \033[32m1\033[0m\n\033[32m---->\033[0m 1 x\n");
    traced("TypeError: x\n    at cell:1:2", "TypeError",
           "\033[1;31mTypeError\033[0m: x\n\033[2m    at cell:1:2\033[0m\n");
    traced("File , line ", "", "File \033[36m\033[0m, line \033[32m\033[0m\n");
    traced("File", "Filename", "File\n");
    traced("-->", "x", "\033[32m-->\033[0m\n");
}

/* ---- pictures -------------------------------------------------------------------------------- */

TEST(kitty)
{
    AUTO(strbuf_done) struct strbuf out = {0}, large = {0};

    strbuf_init(&out, 1 << 20);
    EXPECT(repl_kitty_encode(&out, "QUJD", 4) == 0);
    EXPECT_STR(out.buf, "\033_Ga=T,f=100,q=2,m=0;QUJD\033\\\n");
    strbuf_init(&large, 1 << 20);
    for (int i = 0; i < 1025; i++)
        strbuf_addstr(&large, "QUJD");
    strbuf_reset(&out);
    EXPECT(repl_kitty_encode(&out, large.buf, large.len) == 0);
    EXPECT(strncmp(out.buf, "\033_Ga=T,f=100,q=2,m=1;QUJD", 25) == 0);
    EXPECT(strstr(out.buf, "\033\\\033_Gm=0;QUJD\033\\\n") != NULL);
}

TEST(iterm)
{
    AUTO(strbuf_done) struct strbuf out = {0};

    strbuf_init(&out, 4096);
    EXPECT(repl_iterm_encode(&out, "QU\nJD\r\n", 7) == 0);
    EXPECT_STR(out.buf, "\033]1337;File=inline=1:QUJD\a\n");
}

TEST(what_is_not_base64_is_no_picture)
{
    static const char *const bad[] = {"", "QUJD\033\\\033]0;x\a", "QU JD", "QUJD\001", "<svg>"};

    for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
        AUTO(strbuf_done) struct strbuf out = {0};

        strbuf_init(&out, 4096);
        EXPECT(repl_kitty_encode(&out, bad[i], strlen(bad[i])) == -EINVAL);
        EXPECT(repl_iterm_encode(&out, bad[i], strlen(bad[i])) == -EINVAL);
        EXPECT(repl_iterm_encode(&out, "QU\0JD", 5) == -EINVAL);
        EXPECT_STR(out.buf, "");
    }
}

TEST(sixels)
{
    /* Four columns of black, white, white, red; eight rows, so two bands. */
    static const char head[] = "\033Pq\"1;1;4;8#0;2;0;0;0#1;2;0;0;20#2;";
    unsigned char rgb[4 * 8 * 3];
    struct repl_pixels p = {.width = 4, .height = 8, .rgb = rgb};
    AUTO(strbuf_done) struct strbuf out = {0};

    for (size_t i = 0; i < 4 * 8; i++) {
        rgb[i * 3] = i % 4 == 0 ? 0 : 255;
        rgb[i * 3 + 1] = rgb[i * 3 + 2] = i % 4 == 1 || i % 4 == 2 ? 255 : 0;
    }
    strbuf_init(&out, 1 << 16);
    repl_sixel_encode(&out, &p);
    EXPECT(strncmp(out.buf, head, strlen(head)) == 0);
    const char *bands = strstr(out.buf, "#215;2;100;100;100");
    EXPECT_STR(bands ? bands : "", "#215;2;100;100;100"
                                   "#0~$#180???~$#215?~~-"
                                   "#0B$#180???B$#215?BB-\033\\");
}

TEST(sixels_fit_into_the_window)
{
    struct repl_pixels p = {.width = 4, .height = 2, .rgb = xcalloc(4 * 2, 3)};

    for (unsigned char i = 0; i < 8; i++)
        p.rgb[i * 3] = i;
    repl_pixels_fit(&p, 0);
    repl_pixels_fit(&p, 4);
    EXPECT(p.width == 4 && p.height == 2);
    repl_pixels_fit(&p, 2);
    EXPECT(p.width == 2 && p.height == 1);
    EXPECT(p.rgb[0] == 0 && p.rgb[3] == 2);
    repl_pixels_done(&p);
}

static void make_png(struct strbuf *out, unsigned width, unsigned height)
{
    png_image image = {
        .version = PNG_IMAGE_VERSION, .width = width, .height = height, .format = PNG_FORMAT_RGBA};
    AUTO(free_p) unsigned char *pixels = xcalloc((size_t)width * height, 4);
    png_alloc_size_t size = 1 << 20;
    AUTO(free_p) char *data = xcalloc(1, size);

    pixels[0] = pixels[3] = 255; /* red; all others are transparent */
    EXPECT(png_image_write_to_memory(&image, data, &size, 0, pixels, 0, NULL) != 0);
    strbuf_init(out, 1 << 20);
    strbuf_add(out, data, size);
}

TEST(png)
{
    AUTO(strbuf_done) struct strbuf data = {0};
    AUTO(repl_pixels_done) struct repl_pixels p = {0};

    make_png(&data, 3, 2);
    EXPECT(repl_png_decode(data.buf, data.len, &p) == 0);
    EXPECT(p.width == 3 && p.height == 2);
    EXPECT(p.rgb && memcmp(p.rgb, "\xff\0\0\xff\xff\xff", 6) == 0);
    repl_pixels_done(&p);
    EXPECT(repl_png_decode(data.buf, data.len - 20, &p) == -EINVAL);
    EXPECT(repl_png_decode("", 0, &p) == -EINVAL);
    EXPECT(repl_png_decode("GIF89a", 6, &p) == -EINVAL);
    /* Says that it is 65536 pixels wide. */
    memcpy(data.buf + 16, "\0\1\0\0", 4);
    EXPECT(repl_png_decode(data.buf, data.len, &p) < 0);
}

TEST(answers_about_sixels)
{
    EXPECT(repl_graphics_has_sixel("\033[?62;4;22c"));
    EXPECT(repl_graphics_has_sixel("\033[?62;22;4c"));
    EXPECT(!repl_graphics_has_sixel("\033[?62;22c"));
    EXPECT(!repl_graphics_has_sixel("\033[?4c"));
    EXPECT(!repl_graphics_has_sixel("\033[?62;14;40c"));
    EXPECT(!repl_graphics_has_sixel("\033[?62;4"));
    EXPECT(!repl_graphics_has_sixel("\033[?;;;;c"));
    EXPECT(!repl_graphics_has_sixel(""));
}

/* Asks a terminal that gives this answer, or none if it is NULL. */
static bool ask(const char *answer)
{
    AUTO(close_p) int terminal = -1, program = -1;
    char question[8] = "";

    EXPECT(openpty(&terminal, &program, NULL, NULL, NULL) == 0);
    pid_t pid = fork();
    if (pid == 0) {
        bool asked = read(terminal, question, sizeof(question)) == 3;

        if (asked && memcmp(question, "\033[c", 3) == 0 && answer)
            fd_write_all(terminal, answer, strlen(answer));
        pause();
    }
    bool has = repl_graphics_ask_sixel(program, program);
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
    return has;
}

TEST(asking_for_sixels)
{
    EXPECT(ask("\033[?62;4;22c"));
    EXPECT(!ask("\033[?62;22c"));
    EXPECT(!ask("typed meanwhile"));
    EXPECT(!ask(NULL));
    EXPECT(!repl_graphics_ask_sixel(-1, -1));
}

static enum repl_graphics graphics_with(const char *name, const char *value)
{
    static const char *const names[] = {"TERM", "TERM_PROGRAM", "KITTY_WINDOW_ID", "TMUX", "STY"};

    for (size_t i = 0; i < ARRAY_SIZE(names); i++)
        unsetenv(names[i]);
    setenv(name, value, 1);
    return repl_graphics_of_environment();
}

TEST(which_terminal_shows_what)
{
    EXPECT(graphics_with("TERM", "xterm-256color") == REPL_GRAPHICS_NONE);
    EXPECT(graphics_with("TERM", "xterm-kitty") == REPL_GRAPHICS_KITTY);
    setenv("TMUX", "/tmp/x,1,0", 1);
    EXPECT(repl_graphics_of_environment() == REPL_GRAPHICS_NONE);
    EXPECT(graphics_with("TERM", "screen-256color") == REPL_GRAPHICS_NONE);
    EXPECT(graphics_with("KITTY_WINDOW_ID", "1") == REPL_GRAPHICS_KITTY);
    EXPECT(graphics_with("TERM_PROGRAM", "ghostty") == REPL_GRAPHICS_KITTY);
    EXPECT(graphics_with("TERM_PROGRAM", "WezTerm") == REPL_GRAPHICS_KITTY);
    EXPECT(graphics_with("TERM_PROGRAM", "iTerm.app") == REPL_GRAPHICS_ITERM);
    EXPECT(graphics_with("TERM_PROGRAM", "vscode") == REPL_GRAPHICS_ITERM);
    EXPECT(graphics_with("TERM_PROGRAM", "Apple_Terminal") == REPL_GRAPHICS_NONE);
}

/* ---- all of it ------------------------------------------------------------------------------- */

/* What a cell with this event writes to standard output when that is a pipe. */
static void shown(const char *json, const char *expected)
{
    AUTO(close_p) int saved = dup(STDOUT_FILENO);
    AUTO(close_p) int file = memfd_create("out", 0);
    AUTO(strbuf_done) struct strbuf line = {0};
    AUTO(free_p) char *text = NULL;
    struct strbuf events;
    struct repl_show show;
    size_t len = 0;

    repl_show_init(&show, false, false, false);
    repl_show_begin(&show);
    strbuf_init(&line, 4096);
    strbuf_addf(&line, "%s\n", json);
    fflush(stdout);
    dup2(file, STDOUT_FILENO);
    strbuf_init(&events, REPL_LINE_MAX);
    int r = repl_events_feed(&events, line.buf, line.len, (repl_event_fn *)repl_show_event, &show,
                             NULL);
    strbuf_done(&events);
    dup2(saved, STDOUT_FILENO);
    EXPECT(r == 0);
    lseek(file, 0, SEEK_SET);
    EXPECT(fd_read_all(file, 4096, &text, &len) == 0);
    EXPECT_STR(text ? text : "", expected);
}

TEST(results_in_a_pipe)
{
    shown("{\"type\":\"stdout\",\"text\":\"\\u001b]0;x\\u0007\"}", "\033]0;x\a"); /* as it is */
    shown("{\"type\":\"result\",\"is_main_result\":true,\"text\":\"4\"}", "4\n");
    shown("{\"type\":\"result\",\"is_main_result\":false,\"text\":\"a\\n\"}", "a\n");
    shown("{\"type\":\"result\",\"markdown\":\"# a\"}", "# a\n");
    shown("{\"type\":\"result\",\"json\":{\"a\":1}}", "{\n  \"a\": 1\n}\n");
    shown("{\"type\":\"result\"}", "");
    shown("{\"type\":\"keepalive\"}", "");
}

TEST(files_are_never_overwritten)
{
    char dir[] = "/tmp/repl-test.XXXXXX";
    AUTO(free_p) char *first = NULL, *second = NULL, *other = NULL;
    struct stat st;

    EXPECT(mkdtemp(dir) != NULL && chdir(dir) == 0);
    EXPECT(repl_image_save("abc", 3, "png", &first, NULL) == 0);
    EXPECT(symlink("/dev/null", "sandglass-2.png") == 0);
    EXPECT(repl_image_save("abcd", 4, "png", &second, NULL) == 0);
    EXPECT(repl_image_save("x", 1, "svg", &other, NULL) == 0);
    EXPECT_STR(first ? first : "", "./sandglass-1.png");
    EXPECT_STR(second ? second : "", "./sandglass-3.png");
    EXPECT_STR(other ? other : "", "./sandglass-1.svg");
    EXPECT(stat("sandglass-3.png", &st) == 0 && st.st_size == 4);
    unlink("sandglass-1.png");
    unlink("sandglass-2.png");
    unlink("sandglass-3.png");
    unlink("sandglass-1.svg");
    EXPECT(chdir("/") == 0 && rmdir(dir) == 0);
}
