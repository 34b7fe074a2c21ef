/* What the routes of the tools share. */
#pragma once

#include "e2b/request.h"

/* Fields of a body that are HTTP's, not the tool's: taken out of it. `tenantId` must be that of the
 * key. stream: whether events are wanted; NULL: there are none. */
int take_own_fields(struct e2b_req *q, bool *stream, struct sg_error *e);
