#include "cli/client/progress.h"

#include "lib/base/clock.h"
#include "lib/text/parse.h"
#include "lib/text/strbuf.h"
#include "lib/command/terminal.h"
#include "cli/client/table.h"

#define FIRST_AFTER_NS 500000000ull
#define EVERY_NS       100000000ull
#define CLEAR_LINE     "\r\033[K"
#define NAME_COLUMNS   32
#define BAR_MAX        40
#define BAR_MIN        8
#define LINE_MAX_LEN   512

void progress_init(struct progress *p, const char *name, uint64_t total, bool quiet)
{
    *p = (struct progress){.name = name, .total = total, .started_ns = clock_ns()};
    p->on = !quiet && isatty(STDERR_FILENO);
}

static unsigned percent_of(const struct progress *p)
{
    /* At most 100: a file may grow while it is copied. */
    return p->done < p->total ? (unsigned)(p->done * 100 / p->total) : 100;
}

static void add_bar(struct strbuf *out, unsigned percent, size_t width)
{
    size_t full = width * percent / 100;

    strbuf_addch(out, '[');
    for (size_t i = 0; i < width; i++)
        strbuf_addch(out, i < full ? '=' : i == full ? '>' : ' ');
    strbuf_addstr(out, "]  ");
}

/* Appends the figures after the bar. */
static void add_figures(struct strbuf *out, const struct progress *p, uint64_t elapsed_ms)
{
    uint64_t rate = elapsed_ms > 0 ? p->done * 1000 / elapsed_ms : 0;
    char done[32], total[32], speed[32], left[32];

    if (p->total)
        strbuf_addf(out, "%3u%%  %s of %s", percent_of(p), format_size(p->done, done, sizeof(done)),
                    format_size(p->total, total, sizeof(total)));
    else
        strbuf_addstr(out, format_size(p->done, done, sizeof(done)));
    if (p->files)
        strbuf_addf(out, " in %llu files", (unsigned long long)p->files);
    strbuf_addf(out, "  %s/s", format_size(rate, speed, sizeof(speed)));
    if (p->total && rate > 0 && p->done < p->total) {
        uint64_t seconds = (p->total - p->done + rate - 1) / rate;

        strbuf_addf(out, "  %s left", format_duration_us(seconds * 1000000, left, sizeof(left)));
    }
}

void progress_format(const struct progress *p, uint64_t elapsed_ms, size_t columns, char *buf,
                     size_t cap)
{
    AUTO(strbuf_done) struct strbuf line = strbuf_upto(LINE_MAX_LEN);
    AUTO(strbuf_done) struct strbuf figures = strbuf_upto(LINE_MAX_LEN);
    AUTO(strbuf_done) struct strbuf name = strbuf_upto(LINE_MAX_LEN);

    add_figures(&figures, p, elapsed_ms);
    size_t width = table_clean(&name, p->name, strlen(p->name));
    table_cut(&line, name.buf, width, NAME_COLUMNS);
    strbuf_addstr(&line, "  ");
    size_t used = (width < NAME_COLUMNS ? width : NAME_COLUMNS) + 2 + figures.len;
    /* The brackets and two blanks of the bar take four columns. */
    if (p->total && columns > used + BAR_MIN + 4) {
        size_t room = columns - used - 4;

        add_bar(&line, percent_of(p), room < BAR_MAX ? room : BAR_MAX);
    }
    strbuf_addstr(&line, figures.buf);
    snprintf(buf, cap < columns + 1 ? cap : columns + 1, "%s", line.buf);
}

void progress_add(struct progress *p, uint64_t bytes)
{
    char line[LINE_MAX_LEN];
    uint16_t rows, cols;
    uint64_t now;

    p->done += bytes;
    if (!p->on)
        return;
    now = clock_ns();
    if (now < p->started_ns + FIRST_AFTER_NS || now < p->drawn_ns + EVERY_NS)
        return;
    terminal_size(&rows, &cols);
    progress_format(p, (now - p->started_ns) / 1000000, cols > 1 ? cols - 1u : 1, line,
                    sizeof(line));
    fprintf(stderr, CLEAR_LINE "%s", line);
    fflush(stderr);
    p->drawn = true;
    p->drawn_ns = now;
}

void progress_clear(struct progress *p)
{
    if (p->drawn)
        fprintf(stderr, CLEAR_LINE);
    fflush(stderr);
    p->drawn = false;
}
