/* Bounds of the limits of a sandbox. */
#pragma once

#include "lib/base/err.h"

bool limits_equal(const struct sg_limits *a, const struct sg_limits *b);
/* Fills in the defaults and refuses limits that make no sense. */
int limits_complete(const struct sg_limits *given, struct sg_limits *ret, struct sg_error *e);
