/* How many sandboxes each tenant has and starts, as E2B's team metrics tell it. Counted here, and
 * kept in the store minute by minute (front/store/team_metrics.h), so that a new front still has
 * them; a front that is killed loses what it counted in the last minute.
 *
 *   sandbox.created --> a start --+
 *   every 5 s: those that run ----+--> this minute, of each tenant --> store, when it is over
 *
 * Minutes older than a day become rows of five minutes, and are deleted after a month: so what one
 * request reads is bounded. Of this server alone, whatever others share its database. */
#pragma once

#include "front/core/front.h"
#include "front/store/team_metrics.h"

#define TEAM_METRICS_PERIOD_S 5 /* a burst is counted in so many seconds */
#define TEAM_METRICS_FINE_S   86400
#define TEAM_METRICS_KEEP_S   (30 * 86400)

/* Once, when events can be watched. */
void team_metrics_start(struct front *f);
/* Writes what was counted so far. */
void team_metrics_flush(struct front *f);
/* What is older is there in rows of STORE_METRIC_COARSE_S. */
int64_t team_metrics_fine_from(void);
/* As store_team_metrics_each, up to now. */
int team_metrics_each(struct front *f, const char *tenant, int64_t from, int64_t to, int64_t step,
                      void (*fn)(const struct store_team_metric *m, void *arg), void *arg,
                      struct sg_error *e);
