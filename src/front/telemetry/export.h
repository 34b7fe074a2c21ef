/* From the queue to the targets, in batches, each target at its own pace (export.c). What the spans
 * need of it; trace.h has the rest. */
#pragma once

#include "front/telemetry/span.h"

#define EXPORT_BATCH_SPANS 512
#define EXPORT_BATCH_SIZE  (1024u * 1024)
#define EXPORT_AGE_MS      1000 /* older than that, a batch goes as it is */
#define EXPORT_PAUSE_MS    500  /* after a failure; doubled each time, and varied */
#define EXPORT_PAUSE_MAX   30000
#define EXPORT_ASKED_MAX   120000 /* of a Retry-After */

/* It has ended. */
void export_span(const struct span *s);
/* Per cent of the traces that begin here. */
uint32_t export_sample(void);
