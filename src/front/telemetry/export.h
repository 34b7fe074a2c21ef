/* Sends spans from the queue to the targets, in batches, each target at its own pace (export.c).
 * This header is for span.c; trace.h has the rest. */
#pragma once

#include "front/telemetry/span.h"

#define EXPORT_BATCH_SPANS 512
#define EXPORT_BATCH_SIZE  (1024u * 1024)
#define EXPORT_AGE_MS      1000 /* a batch with an older span is sent even if it is not full */
#define EXPORT_PAUSE_MS    500  /* after a failure; doubled each time, with a random part */
#define EXPORT_PAUSE_MAX   30000
#define EXPORT_ASKED_MAX   120000 /* the longest Retry-After that is obeyed */

/* Encodes and queues a span that has ended. */
void export_span(const struct span *s);
/* How many per cent of the traces that begin here are sampled. */
uint32_t export_sample(void);
