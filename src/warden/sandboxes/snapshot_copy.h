/* Copies of snapshots for other tenants: ORDER_COPY. A tenant's sandboxes share inodes of what they
 * stand on: pages, locks and watches. So a template that others may use is copied for each of them, and
 * the copy is a family of its own. */
#pragma once

#include "warden/processes/front_process.h"

struct snapshot;

/* Answers the ticket when the copy is there. -EAGAIN: too much is copied; -EALREADY: it is a world. */
int snapshot_copy_begin(struct server *s, struct snapshot *of, const char *name, uint64_t most,
                        const struct ticket *t, struct sg_error *e);
