#include "cli/client/build_view.h"

#include <stdarg.h>
#include <string.h>

#include "cli/client/table.h"
#include "lib/base/clock.h"
#include "lib/command/terminal.h"
#include "lib/command/ui.h"

#define LINE_MAX_LEN 4096
#define LIVE_LINES   4 /* of output below the part that runs */
#define CLEAR_BELOW  "\033[J"
#define MS_PER_S     1000.0

void build_view_init(struct build_view *v, const struct recipe *recipe, bool quiet)
{
    *v = (struct build_view){
        .recipe = recipe, .on = !quiet, .live = !quiet && isatty(STDERR_FILENO)};
}

/* Text from outside, at most as wide as the terminal. */
static void add_clean(const struct build_view *v, struct strbuf *out, const char *text, size_t used)
{
    AUTO(strbuf_done) struct strbuf clean = strbuf_upto(LINE_MAX_LEN);
    const char *last = strrchr(text, '\r'); /* a line that a program drew again */
    uint16_t rows, cols;

    text = last && last[1] ? last + 1 : text;
    size_t width = table_clean(&clean, text, strcspn(text, "\r"));
    terminal_size(&rows, &cols);
    if (v->live)
        table_cut(out, clean.buf, width, cols > used + 1 ? cols - used - 1 : 1);
    else
        strbuf_add(out, clean.buf, clean.len);
}

static void put(const struct build_view *v, const char *lead, const char *text)
{
    AUTO(strbuf_done) struct strbuf line = strbuf_upto(LINE_MAX_LEN);

    strbuf_addstr(&line, lead);
    add_clean(v, &line, text, strlen(lead));
    fprintf(stderr, "%s\n", line.buf);
}

/* ---- parts ----------------------------------------------------------------------------------- */

static size_t part_of(const struct recipe *r, const char *step)
{
    char *end;
    unsigned long n = strtoul(step, &end, 10);

    if (strcmp(step, "base") == 0)
        return 0;
    return end == step || *end || n == 0 || n > json_array_size(r->steps) ? r->n_vertices
                                                                          : r->of_step[n - 1];
}

const struct recipe_vertex *build_view_vertex(const struct recipe *r, const char *step)
{
    size_t part = part_of(r, step);

    return part < r->n_vertices ? &r->vertices[part] : NULL;
}

/* "[2/5] RUN make" */
static void add_title(const struct build_view *v, struct strbuf *out)
{
    const struct recipe *r = v->recipe;

    if (v->part < r->n_vertices)
        strbuf_addf(out, "[%zu/%zu] %s", v->part + 1, r->n_vertices, r->vertices[v->part].text);
    else
        strbuf_addstr(out, "finish the template");
}

static double seconds(const struct build_view *v, bool over)
{
    if (over && v->last_ms > v->began_ms)
        return (double)(v->last_ms - v->began_ms) / MS_PER_S;
    return over ? 0 : (double)(clock_ns() - v->began_ns) / 1e9;
}

static void undraw(struct build_view *v)
{
    if (v->drawn > 0)
        fprintf(stderr, "\033[%uA\r" CLEAR_BELOW, v->drawn);
    v->drawn = 0;
}

static void put_state(const struct build_view *v, const char *mark, double time)
{
    AUTO(strbuf_done) struct strbuf title = strbuf_upto(LINE_MAX_LEN);
    char lead[64];

    add_title(v, &title);
    snprintf(lead, sizeof(lead), " =>%s %6.1fs ", mark, time);
    put(v, lead, title.buf);
}

static void draw(struct build_view *v)
{
    size_t n = v->n_tail < LIVE_LINES ? v->n_tail : LIVE_LINES;

    undraw(v);
    put_state(v, "", seconds(v, false));
    for (size_t i = v->n_tail - n; i < v->n_tail; i++)
        put(v, " => => ", v->tail[i % BUILD_VIEW_TAIL]);
    v->drawn = (unsigned)n + 1;
    fflush(stderr);
}

static void drop_tail(struct build_view *v)
{
    for (size_t i = 0; i < BUILD_VIEW_TAIL; i++)
        free(steal_ptr(&v->tail[i]));
    v->n_tail = 0;
}

static void show_end(struct build_view *v, bool failed)
{
    const char *colour =
        ui_has_colour(STDERR_FILENO) && v->live ? (failed ? "\033[31m" : "\033[36m") : "";
    const char *plain = *colour ? "\033[0m" : "";

    if (v->live) {
        undraw(v);
        fputs(colour, stderr);
        put_state(v, failed ? " ERROR" : v->cached ? " CACHED" : "", seconds(v, true));
        fputs(plain, stderr);
        if (!failed)
            return;
        size_t n = v->n_tail < BUILD_VIEW_TAIL ? v->n_tail : BUILD_VIEW_TAIL;
        for (size_t i = v->n_tail - n; i < v->n_tail; i++)
            put(v, "    ", v->tail[i % BUILD_VIEW_TAIL]);
    } else if (failed) {
        fprintf(stderr, "#%u ERROR\n\n", v->number);
    } else if (v->cached) {
        fprintf(stderr, "#%u CACHED\n\n", v->number);
    } else {
        fprintf(stderr, "#%u DONE %.1fs\n\n", v->number, seconds(v, true));
    }
}

static void close_part(struct build_view *v, bool failed)
{
    if (!v->open)
        return;
    v->n_cached += v->cached;
    if (v->on)
        show_end(v, failed);
    drop_tail(v);
    v->open = false;
}

static void open_part(struct build_view *v, size_t part, int64_t ms)
{
    AUTO(strbuf_done) struct strbuf title = strbuf_upto(LINE_MAX_LEN);

    v->last_ms = ms; /* the part before lasted until now */
    close_part(v, false);
    v->open = true;
    v->cached = false;
    v->part = part;
    v->began_ms = ms;
    v->began_ns = clock_ns();
    v->number++;
    if (!v->on || v->live)
        return;
    add_title(v, &title);
    fprintf(stderr, "#%u ", v->number);
    put(v, "", title.buf);
}

/* ---- entries --------------------------------------------------------------------------------- */

static const char *after(const char *text, const char *lead)
{
    size_t len = strlen(lead);

    return strncmp(text, lead, len) == 0 ? text + len : NULL;
}

static void add_output(struct build_view *v, const char *text)
{
    char lead[64];

    free(v->tail[v->n_tail % BUILD_VIEW_TAIL]);
    v->tail[v->n_tail++ % BUILD_VIEW_TAIL] = xstrdup(text);
    if (!v->on || v->live)
        return;
    snprintf(lead, sizeof(lead), "#%u %.3f ", v->number,
             (double)(v->last_ms - v->began_ms) / MS_PER_S);
    put(v, lead, text);
}

/* "CACHED [builder 1/3] RUN make", "[builder 1/3] RUN make", "[builder 1/3] [stdout]: text", or any
 * other text. */
void build_view_entry(struct build_view *v, const char *step, const char *message, int64_t ms)
{
    const char *rest = after(message, "CACHED "), *text, *out;
    bool cached = rest != NULL;
    size_t part = part_of(v->recipe, step);

    if (!v->open || (part != v->part && part >= v->part))
        open_part(v, part, ms);
    v->last_ms = ms;
    rest = rest ? rest : message;
    bool builder = after(rest, "[builder") || after(rest, "[base]") || after(rest, "[finalize]");
    text = builder ? strstr(rest, "] ") : NULL;
    if (!text) {
        add_output(v, rest);
        return;
    }
    text += 2;
    out = after(text, "[stdout]: ");
    out = out ? out : after(text, "[stderr]: ");
    v->cached |= cached && part > 0;
    if (out)
        add_output(v, out);
    else if (strcmp(step, "finalize") == 0 || (strcmp(step, "base") == 0 && !after(text, "FROM ")))
        add_output(v, text);
}

void build_view_tick(struct build_view *v)
{
    if (v->live && v->open)
        draw(v);
}

void build_view_say(struct build_view *v, const char *fmt, ...)
{
    char text[512];
    va_list ap;

    if (!v->on)
        return;
    va_start(ap, fmt);
    vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    put(v, v->live ? " => " : "#0 ", text);
}

void build_view_end(struct build_view *v, bool failed)
{
    close_part(v, failed);
    fflush(stderr);
}
