/* Which web pages may ask.
 *
 * A browser says where a page comes from. One whose name was made to lead to this machine (DNS
 * rebinding) tells its own name, so the name must be one that is ours: this machine's, or one that
 * the settings give the server. Programs that are no browser say nothing, and are not asked. */
#pragma once

#include "lib/settings/settings.h"

bool origin_allowed(const struct settings *s, const char *origin);
