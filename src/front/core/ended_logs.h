/* How sandboxes have ended, and their logs, for those who come to look why. Bounded in bytes and
 * time: each tenant has a share, of which its oldest go first. All together have a bound as well;
 * above it the tenant that holds most gives. */
#pragma once

#include "front/core/sandbox.h"

#define ENDED_LOGS_BYTES     (8u * 1024 * 1024)   /* of a tenant */
#define ENDED_LOGS_BYTES_ALL (256u * 1024 * 1024) /* of all */
#define ENDED_LOGS_MS        (10 * 60 * 1000)

/* Of one that has ended. Takes the log over. */
void ended_logs_keep(const char *tenant, const char *id, const struct sandbox_end *end,
                     struct sandbox_log *log);
/* NULL: there is none of that tenant, or not any more. */
const struct sandbox_log *ended_logs_log(const char *tenant, const char *id);
/* The same: how it ended. tenant NULL: whoever's it was. */
const struct sandbox_end *ended_logs_end(const char *tenant, const char *id);
