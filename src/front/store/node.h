/* Whether this server takes new sandboxes, as its operator said over HTTP (front/core/node.h). */
#pragma once

#include <stdint.h>

#include "lib/base/err.h"

struct store;

/* Both 0 if nothing was ever said. */
int store_node_get(struct store *s, int64_t *ret_status, int64_t *ret_since_ms, struct sg_error *e);
int store_node_set(struct store *s, int64_t status, int64_t since_ms, struct sg_error *e);
