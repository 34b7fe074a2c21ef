/* Reports sandboxes that ended while there was no front to report it: the server was stopped,
 * crashed or was restored, or its front was restarted. Each sandbox that was reported as created
 * and no longer exists gets its sandbox.ended event now, once, with its reason. */
#pragma once

#include "front/core/front.h"
#include "wire/warden.h"

/* Called before living_match: the warden reports the end of a sandbox that this front never
 * knew. */
void living_told_end(const struct order_answer *a);
/* Called at the start, when the warden has named all sandboxes and events can be emitted. again:
 * the warden has had a front before, so sandboxes have outlived that front. */
void living_match(struct front *f, bool again);
/* The server was asked to stop and is about to end, with all its sandboxes. */
void living_stopping(struct front *f);
