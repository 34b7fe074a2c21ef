/* Code that the routes of the tools share. */
#pragma once

#include "front/e2b/request.h"
#include "lib/sanitise/sanitise.h"

/* Takes out of a body the fields that the application sets and not the model. `tenantId` must be
 * the tenant of the key. `stream`: whether the client wants events; NULL: this route has no stream.
 * Returns the field `sanitise`, a mode; to ask for off where that is forbidden is an error. */
struct sanitise_level take_own_fields(struct e2b_req *q, bool *stream);
