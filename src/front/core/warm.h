/* Starts a kernel before the first cell asks for it. */
#pragma once

#include "front/core/sandbox.h"
#include "wire/warden.h"

/* Has the agent start Python's default kernel, and does not wait for it. Otherwise the first cell
 * would start it. */
void sandbox_warm_kernel(struct sandbox *b);
/* Message of the warden: a kernel could not be a copy, and why. */
void sandbox_told_cold(struct front *f, const struct order_answer *a);
