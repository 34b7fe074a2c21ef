#include "cli/client/repl_show.h"

#include "lib/text/base64.h"
#include "lib/base/fd.h"
#include "lib/command/terminal.h"
#include "lib/command/ui.h"
#include "cli/client/repl_sixel.h"
#include "cli/client/repl_traceback.h"

#include <sys/ioctl.h>

#define RED        "\033[31m"
#define RESET      "\033[0m"
#define SHOWN_MAX  (REPL_LINE_MAX * 2)
#define DUMP_FLAGS (JSON_INDENT(2) | JSON_ENCODE_ANY | JSON_SORT_KEYS)

void repl_show_init(struct repl_show *s, bool terminal, bool colour, bool json)
{
    *s = (struct repl_show){.terminal = terminal, .colour = colour, .json = json};
    s->colour_errors = colour && isatty(STDERR_FILENO);
}

void repl_show_begin(struct repl_show *s)
{
    s->failed = false;
    memset(s->filter, 0, sizeof(s->filter));
}

/* ---- writing --------------------------------------------------------------------------------- */

static int write_all(int fd, const char *data, size_t len, struct sg_error *e)
{
    int r = len > 0 ? fd_write_all(fd, data, len) : 0;

    if (r < 0)
        return err_code(e, r, "cannot write the output");
    return 0;
}

/* Writes text of the cell; colour: NULL for none. */
static int put(struct repl_show *s, int fd, const char *colour, struct repl_text t,
               struct sg_error *e)
{
    AUTO(strbuf_done) struct strbuf out = strbuf_upto(SHOWN_MAX);

    if (t.len == 0)
        return 0;
    if (colour)
        strbuf_addstr(&out, colour);
    if (s->terminal)
        repl_filter(&s->filter[fd == STDERR_FILENO], &out, t.text, t.len);
    else
        strbuf_add(&out, t.text, t.len);
    if (colour)
        strbuf_addstr(&out, RESET);
    s->in_line = t.text[t.len - 1] != '\n';
    return write_all(fd, out.buf, out.len, e);
}

void repl_show_line(struct repl_show *s)
{
    if (!s->in_line || !s->terminal)
        return;
    write_all(STDOUT_FILENO, "\n", 1, NULL);
    s->in_line = false;
}

/* ---- pictures -------------------------------------------------------------------------------- */

static enum repl_graphics graphics(struct repl_show *s)
{
    enum repl_graphics g = s->terminal ? repl_graphics_of_environment() : REPL_GRAPHICS_NONE;

    if (g != REPL_GRAPHICS_NONE || !s->terminal || repl_graphics_in_multiplexer())
        return g;
    if (!s->asked_sixel)
        s->has_sixel = repl_graphics_ask_sixel(STDIN_FILENO, STDOUT_FILENO);
    s->asked_sixel = true;
    return s->has_sixel ? REPL_GRAPHICS_SIXEL : REPL_GRAPHICS_NONE;
}

static unsigned width_of_terminal(void)
{
    struct winsize w;

    return ioctl(STDOUT_FILENO, TIOCGWINSZ, &w) == 0 ? w.ws_xpixel : 0;
}

static int encode_sixel(struct strbuf *out, struct repl_text base64)
{
    AUTO(repl_pixels_done) struct repl_pixels pixels = {0};
    AUTO(strbuf_done) struct strbuf png = strbuf_upto(REPL_LINE_MAX);

    if (base64_decode(&png, base64.text, base64.len) < 0 ||
        repl_png_decode(png.buf, png.len, &pixels) < 0)
        return -EINVAL;
    repl_pixels_fit(&pixels, width_of_terminal());
    repl_sixel_encode(out, &pixels);
    strbuf_addch(out, '\n');
    return 0;
}

/* Shows a picture in the terminal. False if this terminal cannot. */
static bool show_inline(struct repl_show *s, const char *format, struct repl_text base64)
{
    AUTO(strbuf_done) struct strbuf out = strbuf_upto(SHOWN_MAX);
    bool png = strcmp(format, "png") == 0;
    enum repl_graphics g = graphics(s);
    int r = -EINVAL;

    if (g == REPL_GRAPHICS_KITTY && png)
        r = repl_kitty_encode(&out, base64.text, base64.len);
    else if (g == REPL_GRAPHICS_ITERM)
        r = repl_iterm_encode(&out, base64.text, base64.len);
    else if (g == REPL_GRAPHICS_SIXEL && png)
        r = encode_sixel(&out, base64);
    if (r < 0 || out.truncated)
        return false;
    repl_show_line(s);
    return write_all(STDOUT_FILENO, out.buf, out.len, NULL) == 0;
}

static void save(struct repl_show *s, const char *format, struct repl_text t)
{
    AUTO(strbuf_done) struct strbuf data = strbuf_upto(REPL_LINE_MAX);
    AUTO(free_p) char *name = NULL;
    struct sg_error e;
    bool text = strcmp(format, "svg") == 0;

    if (text)
        strbuf_add(&data, t.text, t.len);
    else if (base64_decode(&data, t.text, t.len) < 0)
        return ui_error("the picture is not base64");
    repl_show_line(s);
    if (repl_image_save(data.buf, data.len, format, &name, &e) < 0)
        ui_error("%s", e.message);
    else
        ui_note("picture saved as %s", name);
}

/* Shows a picture once, in the best format: a figure may come in several. */
static bool show_picture(struct repl_show *s, const struct repl_event *event)
{
    static const char *const formats[] = {"png", "jpeg", "svg"};

    for (size_t i = 0; i < ARRAY_SIZE(formats); i++) {
        struct repl_text t = repl_event_text(event, formats[i]);

        if (t.len == 0)
            continue;
        if (i == 2 || !show_inline(s, formats[i], t))
            save(s, formats[i], t);
        return true;
    }
    return false;
}

/* ---- results and errors ---------------------------------------------------------------------- */

/* Shows a value that has no plain text, in another form. */
static int show_other_form(struct repl_show *s, const struct repl_event *event, struct sg_error *e)
{
    static const char *const forms[] = {"markdown", "latex", "html", "javascript"};
    const json_t *json = json_object_get(event->object, "json");
    struct repl_text t = {0};

    for (size_t i = 0; t.len == 0 && i < ARRAY_SIZE(forms); i++)
        t = repl_event_text(event, forms[i]);
    AUTO(free_p) char *dump = t.len == 0 && json ? json_dumps(json, DUMP_FLAGS) : NULL;
    if (dump)
        t = (struct repl_text){.text = dump, .len = strlen(dump)};
    return put(s, STDOUT_FILENO, NULL, t, e);
}

static int show_result(struct repl_show *s, const struct repl_event *event, struct sg_error *e)
{
    struct repl_text t = repl_event_text(event, "text");
    int r = 0;

    repl_show_line(s);
    if (event->main && s->terminal) {
        char label[64];
        /* A value of several lines is aligned only if it starts on a line of its own. */
        bool lines = memchr(t.text, '\n', t.len) != NULL;
        int n = snprintf(label, sizeof(label), "%sOut[%llu]:%s%s", s->colour ? RED : "",
                         (unsigned long long)s->count, s->colour ? RESET : "", lines ? "\n" : " ");

        r = write_all(STDOUT_FILENO, label, (size_t)n, e);
        s->in_line = !lines;
    }
    if (r == 0)
        r = t.len > 0 ? put(s, STDOUT_FILENO, NULL, t, e) : 0;
    bool picture = r == 0 && show_picture(s, event);
    if (r == 0 && t.len == 0 && !picture)
        r = show_other_form(s, event, e);
    if (r == 0 && s->in_line)
        r = write_all(STDOUT_FILENO, "\n", 1, e);
    s->in_line = false;
    return r;
}

static int show_error(struct repl_show *s, const struct repl_event *event, struct sg_error *e)
{
    AUTO(strbuf_done) struct strbuf clean = strbuf_upto(SHOWN_MAX), out = strbuf_upto(SHOWN_MAX);
    struct repl_text name = repl_event_text(event, "name"), value = repl_event_text(event, "value"),
                     trace = repl_event_text(event, "traceback");
    struct repl_filter filter = {0};

    s->failed = true;
    repl_show_line(s);
    if (trace.len > 0)
        repl_filter(&filter, &clean, trace.text, trace.len);
    else
        strbuf_addf(&clean, "%s: %s", name.text, value.text);
    repl_traceback(&out, clean.buf, name.text, s->colour_errors);
    return write_all(STDERR_FILENO, out.buf, out.len, e);
}

int repl_show_event(struct repl_show *s, const struct repl_event *event, struct sg_error *e)
{
    if (event->kind == REPL_EVENT_ERROR)
        s->failed = true;
    if (s->json) {
        int r = write_all(STDOUT_FILENO, event->line, event->len, e);

        return r < 0 ? r : write_all(STDOUT_FILENO, "\n", 1, e);
    }
    switch (event->kind) {
    case REPL_EVENT_COUNT:
        s->count = event->count;
        return 0;
    case REPL_EVENT_STDOUT:
        return put(s, STDOUT_FILENO, NULL, repl_event_text(event, "text"), e);
    case REPL_EVENT_STDERR:
        return put(s, STDERR_FILENO, s->colour_errors ? RED : NULL, repl_event_text(event, "text"),
                   e);
    case REPL_EVENT_RESULT:
        return show_result(s, event, e);
    case REPL_EVENT_ERROR:
        return show_error(s, event, e);
    case REPL_EVENT_OTHER:
    case REPL_EVENT_END:
    case REPL_EVENT_MAX_:
    default:
        return 0;
    }
}
