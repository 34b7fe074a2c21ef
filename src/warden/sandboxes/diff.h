/* What differs between the files of sandboxes and snapshots: ORDER_DIFF. A files worker finds it out,
 * and writes it into the front's list; the warden says which directories are meant. */
#pragma once

#include "warden/processes/front_process.h"

struct instance;
struct snapshot;

/* Files of an instance over those of a snapshot, against those of another snapshot. Each may be NULL:
 * `of` or `against`: the template alone. Answers the ticket when it is done; the list stays the
 * caller's. -EAGAIN: too many are under way. -EXDEV. */
int diff_begin(struct server *s, const struct instance *i, struct snapshot *of,
               struct snapshot *against, int list, const struct ticket *t, struct sg_error *e);
