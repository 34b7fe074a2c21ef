/* A kernel for the code that is likely to come. */
#pragma once

#include "front/core/sandbox.h"

/* Has the agent start the default kernel of Python, and does not wait for it. Without it the first
 * cell starts one. */
void sandbox_warm_kernel(struct sandbox *b);
