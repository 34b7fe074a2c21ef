/* How many sandboxes each tenant had, minute by minute, in the server's own file: what
 * front/core/team_metrics.c has counted. */
#pragma once

#include <stdint.h>

#include "lib/base/err.h"

struct store;

struct store_team_metric {
    int64_t at;       /* the beginning of the time, in seconds since 1970 */
    uint32_t peak;    /* most sandboxes at once */
    uint32_t started; /* sandboxes that were started */
    uint32_t burst;   /* ... in five seconds, at most */
};

/* Adds to what the store has of that minute. Between store_team_metrics_begin, if it returned 0,
 * and store_team_metrics_end, all are one write that does not wait for the disk. */
int store_team_metrics_begin(struct store *s, struct sg_error *e);
int store_team_metric_add(struct store *s, const char *tenant, const struct store_team_metric *m,
                          struct sg_error *e);
int store_team_metrics_end(struct store *s, int r, struct sg_error *e);
/* Calls fn for each step (in seconds, whole minutes) from `from` to `to` in which the tenant had a
 * sandbox, oldest first. fn must not use the store. */
int store_team_metrics_each(struct store *s, const char *tenant, int64_t from, int64_t to,
                            int64_t step, void (*fn)(const struct store_team_metric *m, void *arg),
                            void *arg, struct sg_error *e);
/* Of all tenants: makes rows of STORE_METRIC_COARSE_S out of the minutes before `coarse` (a multiple
 * of that), and deletes what is before `gone`, some rows at a time. */
#define STORE_METRIC_COARSE_S 300
int store_team_metrics_thin(struct store *s, int64_t coarse, int64_t gone, struct sg_error *e);
