#pragma once

#include "lib/command/options.h"

extern const struct cli_syntax drain_syntax;
