/* The numbers as figures.c and figures_print.c keep them. */
#pragma once

#include "front/telemetry/figures.h"
#include "lib/base/map.h"

/* The upper bounds of the buckets: in nanoseconds, and as the text has them. */
#define FIGURE_BOUNDS(X) \
    X(250000, "0.00025") \
    X(500000, "0.0005")  \
    X(1000000, "0.001")  \
    X(2500000, "0.0025") \
    X(5000000, "0.005")  \
    X(10000000, "0.01")  \
    X(25000000, "0.025") \
    X(50000000, "0.05")  \
    X(100000000, "0.1")  \
    X(250000000, "0.25") \
    X(500000000, "0.5")  \
    X(1000000000, "1")   \
    X(2500000000, "2.5") \
    X(5000000000, "5")   \
    X(10000000000, "10") \
    X(30000000000, "30") \
    X(60000000000, "60")

#define FIGURE_BOUND_ONE(ns, text) +1
#define FIGURE_BUCKETS             (0 FIGURE_BOUNDS(FIGURE_BOUND_ONE))

struct histogram {
    uint64_t in[FIGURE_BUCKETS + 1]; /* each bucket by itself; the last is beyond all bounds */
    uint64_t n, sum_ns;
};

/* One figure with one value of its label. */
struct series {
    struct map_node by_label;
    bool known; /* false: left out of the text */
    double value;
    struct histogram *histogram; /* NULL: the figure is no histogram */
    char *label;                 /* valid UTF-8, cut */
};

struct figure_info {
    enum figure_type type;
    const char *name, *label, *help;
};

const struct figure_info *figure_info(enum figure f);
const struct map *figure_series(enum figure f); /* in the order of their first use */
