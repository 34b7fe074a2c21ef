/* What the routes of the tools share. */
#pragma once

#include "front/e2b/request.h"
#include "lib/sanitise/sanitise.h"

/* Fields of a body that are the caller's, not the model's: taken out of it. `tenantId` must be that
 * of the key. stream: whether events are wanted; NULL: there are none. `sanitise` is a mode; to ask
 * for off where that is forbidden is an error. */
int take_own_fields(struct e2b_req *q, bool *stream, struct sanitise_level *sanitise,
                    struct sg_error *e);
