/* Prints the text form that Prometheus reads, version 0.0.4: for each name its help, its type, and
 * a line for each value of its label. A figure that nobody has counted yet is left out if it has a
 * label, and is 0 if it has none. */
#include <math.h>
#include <string.h>

#include "front/telemetry/figures_impl.h"

#define LABELS_MAX (4 * FIGURE_LABEL_MAX + 128) /* escaped values, with the labels' names */
#define EXACT      9007199254740992.0           /* up to here a double holds every whole number */

#define FIGURE_BOUND_TEXT(ns, text) text,
static const char *const bounds[] = {FIGURE_BOUNDS(FIGURE_BOUND_TEXT)};
_Static_assert(ARRAY_SIZE(bounds) == FIGURE_BUCKETS, "a text for each bucket");

static const char *const types[] = {
    [FIGURE_COUNTER] = "counter", [FIGURE_GAUGE] = "gauge", [FIGURE_HISTOGRAM] = "histogram"};

static void add_label(struct strbuf *out, const char *name, size_t name_len, const char *value,
                      size_t len)
{
    strbuf_add(out, name, name_len);
    strbuf_addstr(out, "=\"");
    for (size_t i = 0; i < len; i++) {
        if (value[i] == '\\' || value[i] == '"')
            strbuf_addch(out, '\\');
        strbuf_addch(out, value[i]);
    }
    strbuf_addch(out, '"');
}

/* Writes layer="sandbox",cause="timeout"; nothing for a figure without a label. */
static void make_labels(struct strbuf *out, const char *names, const char *value)
{
    size_t first = names ? strcspn(names, ":") : 0;
    bool two = names && names[first] == ':';
    size_t len = two ? strcspn(value, ":") : strlen(value);

    strbuf_reset(out);
    if (!names)
        return;
    add_label(out, names, first, value, len);
    if (!two)
        return;
    strbuf_addch(out, ',');
    value += len + (value[len] == ':');
    add_label(out, names + first + 1, strlen(names + first + 1), value, strlen(value));
}

static void add_value(struct strbuf *out, double v)
{
    if (floor(v) == v && fabs(v) < EXACT)
        strbuf_addf(out, " %.0f\n", v);
    else
        strbuf_addf(out, " %.15g\n", v);
}

static void print_plain(struct strbuf *out, const char *name, const char *labels, double v)
{
    strbuf_addf(out, labels[0] ? FIGURES_PREFIX "%s{%s}" : FIGURES_PREFIX "%s%s", name, labels);
    add_value(out, v);
}

static void print_histogram(struct strbuf *out, const char *name, const char *labels,
                            const struct histogram *h)
{
    const char *comma = labels[0] ? "," : "", *open = labels[0] ? "{" : "",
               *close = labels[0] ? "}" : "";
    uint64_t n = 0;

    for (size_t i = 0; i <= FIGURE_BUCKETS; i++) {
        n += h->in[i];
        strbuf_addf(out, FIGURES_PREFIX "%s_bucket{%s%sle=\"%s\"} %llu\n", name, labels, comma,
                    i < FIGURE_BUCKETS ? bounds[i] : "+Inf", (unsigned long long)n);
    }
    strbuf_addf(out, FIGURES_PREFIX "%s_sum%s%s%s %llu.%09llu\n", name, open, labels, close,
                (unsigned long long)(h->sum_ns / 1000000000),
                (unsigned long long)(h->sum_ns % 1000000000));
    strbuf_addf(out, FIGURES_PREFIX "%s_count%s%s%s %llu\n", name, open, labels, close,
                (unsigned long long)h->n);
}

static void print_figure(struct strbuf *out, enum figure f, struct strbuf *labels)
{
    static const struct histogram nothing;
    const struct figure_info *info = figure_info(f);
    const struct map *series = figure_series(f);
    bool histogram = info->type == FIGURE_HISTOGRAM, untold = !info->label && series->n == 0;

    if (!untold && !LIST_FIND(struct series, s, &series->all, by_label.all, s->known))
        return;
    strbuf_addf(out, "# HELP " FIGURES_PREFIX "%s %s\n", info->name, info->help);
    strbuf_addf(out, "# TYPE " FIGURES_PREFIX "%s %s\n", info->name, types[info->type]);
    if (untold && histogram)
        print_histogram(out, info->name, "", &nothing);
    else if (untold)
        print_plain(out, info->name, "", 0);
    MAP_EACH(struct series, one, series, by_label) {
        if (!one->known)
            continue;
        make_labels(labels, info->label, one->label);
        if (histogram)
            print_histogram(out, info->name, labels->buf, one->histogram);
        else
            print_plain(out, info->name, labels->buf, one->value);
    }
}

void figures_print(struct strbuf *out)
{
    AUTO(strbuf_done) struct strbuf labels = strbuf_upto(LABELS_MAX);

    for (enum figure f = 0; f < FIGURE_MAX_; f++)
        print_figure(out, f, &labels);
}
