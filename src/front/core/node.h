/* Whether this server takes new sandboxes. Its operator may close it over HTTP (POST /nodes/{id}),
 * and open it again; meanwhile it is not ready, and the sandboxes that it has go on, paused ones can
 * be resumed. This is not the drain that ends a server (front/main/drain.h), which nothing undoes.
 * What was said holds until the server is restarted, also for another front. */
#pragma once

#include "front/core/front.h"

enum node_status { NODE_READY, NODE_DRAINING, NODE_STANDBY, NODE_STATUS_MAX_ };

/* Once, when the store is open. again: the server has had a front before. */
int node_start(struct front *f, bool again, struct sg_error *e);
/* -EBUSY: a server that drains does not become one that stands by. */
int node_set_status(struct front *f, enum node_status status, struct sg_error *e);
enum node_status node_status(const struct front *f);
int64_t node_status_since_ms(void);
/* 0, or why no new sandbox can be made here. */
int node_check_open(const struct front *f, struct sg_error *e);
