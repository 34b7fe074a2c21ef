#include <assert.h>
#include <string.h>

#include "lib/text/json.h"
#include "front/telemetry/figures_impl.h"

#define REPLACEMENT "\xef\xbf\xbd"
#define OTHER       "other"
#define OTHER_TWO   "other:other"

#define FIGURE_INFO(id, type, name, label, help) {FIGURE_##type, name, label, help},
static const struct figure_info infos[FIGURE_MAX_] = {FIGURES(FIGURE_INFO)};

#define FIGURE_BOUND_NS(ns, text) ns##ull,
static const uint64_t bounds_ns[] = {FIGURE_BOUNDS(FIGURE_BOUND_NS)};
_Static_assert(ARRAY_SIZE(bounds_ns) == FIGURE_BUCKETS, "a bound for each bucket");

static struct map series[FIGURE_MAX_];

const struct figure_info *figure_info(enum figure f)
{
    return &infos[f];
}

const struct map *figure_series(enum figure f)
{
    return &series[f];
}

/* ---- values of labels ------------------------------------------------------------------------ */

/* True: the value can be kept as it is, as nearly all can. */
static bool is_clean(const char *value)
{
    size_t n = 0;

    while (value[n] >= 0x20 && value[n] < 0x7f)
        n++;
    return !value[n] && n <= FIGURE_LABEL_MAX;
}

/* Replaces invalid UTF-8, and control characters too: these are valid, but nobody wants them on a
 * screen. */
static void clean(const char *value, char ret[FIGURE_LABEL_MAX + 1])
{
    const unsigned char *p = (const unsigned char *)value;
    size_t left = strnlen(value, 4 * FIGURE_LABEL_MAX), len = 0;

    while (left > 0) {
        size_t n = jw_utf8_sequence(p, left);
        bool bad = n == 0 || (n == 1 && (*p < 0x20 || *p == 0x7f));
        const void *from = bad ? REPLACEMENT : (const void *)p;
        size_t add = bad ? strlen(REPLACEMENT) : n;

        if (len + add > FIGURE_LABEL_MAX)
            break;
        memcpy(ret + len, from, add);
        len += add;
        n = n > 0 ? n : 1;
        p += n;
        left -= n;
    }
    ret[len] = '\0';
}

/* ---- series ---------------------------------------------------------------------------------- */

static struct series *find(enum figure f, const char *label)
{
    return MAP_FIND(struct series, s, &series[f], hash_text(0, label), by_label,
                    strcmp(s->label, label) == 0);
}

static struct series *add(enum figure f, const char *label)
{
    struct series *new = xcalloc(1, sizeof(*new));

    new->label = xstrdup(label);
    if (infos[f].type == FIGURE_HISTOGRAM)
        new->histogram = xcalloc(1, sizeof(*new->histogram));
    map_add(&series[f], &new->by_label, hash_text(0, label));
    return new;
}

/* The series of a label's value. make: makes it if it does not exist; otherwise NULL. */
static struct series *series_of(enum figure f, const char *label, bool make)
{
    char cleaned[FIGURE_LABEL_MAX + 1];

    assert(f < FIGURE_MAX_);
    if (!infos[f].label || !label)
        label = "";
    if (!is_clean(label)) {
        clean(label, cleaned);
        label = cleaned;
    }
    struct series *s = find(f, label);
    if (s || !make)
        return s;
    if (series[f].n >= FIGURE_VALUES_MAX) {
        label = strchr(infos[f].label, ':') ? OTHER_TWO : OTHER;
        s = find(f, label);
    }
    return s ? s : add(f, label);
}

/* ---- counting -------------------------------------------------------------------------------- */

/* The series to count in, which is known from now on. */
static struct series *counted(enum figure f, const char *label, enum figure_type type)
{
    struct series *s = series_of(f, label, true);

    assert(infos[f].type == type);
    s->known = true;
    return s;
}

void figure_add(enum figure f, const char *label, double n)
{
    assert(n >= 0);
    counted(f, label, FIGURE_COUNTER)->value += n;
}

void figure_set(enum figure f, const char *label, double value)
{
    counted(f, label, FIGURE_GAUGE)->value = value;
}

void figure_total(enum figure f, const char *label, double value)
{
    counted(f, label, FIGURE_COUNTER)->value = value;
}

void figure_observe(enum figure f, const char *label, uint64_t ns)
{
    struct histogram *h = counted(f, label, FIGURE_HISTOGRAM)->histogram;
    size_t i = 0;

    while (i < FIGURE_BUCKETS && ns > bounds_ns[i])
        i++;
    h->in[i]++;
    h->n++;
    h->sum_ns += ns;
}

void figure_forget(enum figure f, const char *label)
{
    struct series *s = series_of(f, label, false);

    if (s)
        s->known = false;
}
