/* The process provider: sandboxes made of namespaces, control groups, layers and filters. */
#pragma once

#include "warden/providers/provider.h"

extern const struct provider_ops process_provider;
