/* Samples of what a sandbox uses, taken every few seconds while it runs. */
#pragma once

#include "lib/base/base.h"

#define METRICS_EVERY_MS 5000
#define METRICS_KEPT     360 /* half an hour */

struct metric {
    int64_t ms;    /* wall clock */
    float cpu_pct; /* 100: one processor */
    uint64_t memory_used, memory_cache, memory_total, disk_used, disk_total;
};

struct box_metrics {
    struct metric *ring; /* NULL until the first sample */
    uint32_t first, n;
    uint64_t last_cpu_usec, last_ns;
    uint64_t oom_kills, tenant_kills, machine_kills, pids_hits; /* that were told of */
    bool sampling;
};

struct front;
struct box;

/* Starts the regular sampling of all sandboxes. */
void metrics_start(struct front *f);
void box_metrics_done(struct box_metrics *m);
uint32_t box_metrics_count(const struct box_metrics *m);
const struct metric *box_metrics_get(const struct box_metrics *m, uint32_t i); /* 0: oldest */
/* A sample of now; `done` gets NULL if that was not possible. */
void box_metrics_sample(struct box *b, void (*done)(void *arg, const struct metric *m), void *arg);
