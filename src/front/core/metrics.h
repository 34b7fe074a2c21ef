/* Samples of the processor time, memory and disk that a sandbox uses, taken every few seconds while
 * it runs. */
#pragma once

#include "lib/base/base.h"

#define METRICS_EVERY_MS 5000
#define METRICS_KEPT     360 /* half an hour */

struct metric {
    int64_t ms;    /* wall clock */
    float cpu_pct; /* 100: one processor */
    uint64_t memory_used, memory_cache, memory_total, disk_used, disk_total;
};

struct sandbox_metrics {
    struct metric *ring; /* NULL until the first sample */
    uint32_t first, n;
    uint64_t last_cpu_usec, last_ns;
    uint64_t oom_kills, tenant_kills, machine_kills, pids_hits; /* as reported last */
    bool sampling;
};

struct front;
struct sandbox;

/* Starts the regular sampling of all sandboxes. */
void metrics_start(struct front *f);
void sandbox_metrics_done(struct sandbox_metrics *m);
/* Adds a sample as it was. */
void sandbox_metrics_restore(struct sandbox_metrics *m, const struct metric *s);
uint32_t sandbox_metrics_count(const struct sandbox_metrics *m);
const struct metric *sandbox_metrics_get(const struct sandbox_metrics *m,
                                         uint32_t i); /* 0: oldest */
/* Takes a sample now. `done` gets NULL if that was not possible. */
void sandbox_metrics_sample(struct sandbox *b, void (*done)(void *arg, const struct metric *m),
                            void *arg);
