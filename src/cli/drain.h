#pragma once

#include "cli/options.h"

extern const struct cli_syntax drain_syntax;
