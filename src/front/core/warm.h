/* A kernel for the code that is likely to come. */
#pragma once

#include "front/core/box.h"

/* Has the agent start the default kernel of Python, and does not wait for it. Without it the first
 * cell starts one. */
void box_warm_kernel(struct box *b);
