/* Sandboxes that ended while there was no front to tell of it: the server was stopped, crashed or
 * restored, or its front was started anew. What was told to be there and is not there any more is
 * told now, each with its reason, once. */
#pragma once

#include "front/core/front.h"
#include "wire/warden.h"

/* Before living_match: the warden remembers how a sandbox ended that this front never knew. */
void living_told_end(const struct order_answer *a);
/* At the start, when the warden has told of all sandboxes and events can be told. again: this
 * server has had a front before, so sandboxes outlived that. */
void living_match(struct front *f, bool again);
/* The server is about to end as it was asked to, and its sandboxes with it. */
void living_stopping(struct front *f);
