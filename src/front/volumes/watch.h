/* Keeps an eye on the size of volumes that sandboxes write to. Without quotas of the file system
 * nothing stops a program inside: but once a volume is known to be full, no further sandbox may
 * write to it, and nothing is written to it over HTTP. */
#pragma once

#include "front/core/front.h"

/* Has each such volume measured twice a minute. */
void volumes_watch(struct front *f);
/* Has one measured now, unless many are. */
void volume_look(struct front *f, const char *id);
