/* Which web pages may ask.
 *
 * A browser says where a page comes from. A page whose name was made to lead to this machine (DNS
 * rebinding) comes with its own name, so the name must be one of ours: this machine's, or one that
 * the settings give the server. Programs other than browsers send no origin, and may ask. */
#pragma once

#include "lib/settings/settings.h"

bool origin_allowed(const struct settings *s, const char *origin);
