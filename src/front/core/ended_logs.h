/* The ends and logs of sandboxes that are gone, for users who want to know why. Kept for a limited
 * time and in limited space: each tenant has a share, and its oldest logs go first. All tenants
 * together have a limit too; above it, the tenant that holds most loses its oldest. */
#pragma once

#include "front/core/sandbox.h"

#define ENDED_LOGS_BYTES     (8u * 1024 * 1024)   /* of one tenant */
#define ENDED_LOGS_BYTES_ALL (256u * 1024 * 1024) /* of all tenants */
#define ENDED_LOGS_MS        (10 * 60 * 1000)

/* Keeps the end and the log of a sandbox. Takes the log over. */
void ended_logs_keep(const char *tenant, const char *id, const struct sandbox_end *end,
                     struct sandbox_log *log);
/* The same for one that ended at a time of an earlier front. */
void ended_logs_restore(const char *tenant, const char *id, const struct sandbox_end *end,
                        struct sandbox_log *log, int64_t ended_ms);
struct ended_log {
    const char *tenant, *id;
    int64_t ended_ms;
    const struct sandbox_end *end;
    const struct sandbox_log *log;
};
/* Calls fn for each until it returns false. */
void ended_logs_each(bool (*fn)(const struct ended_log *l, void *arg), void *arg);
/* The log of a sandbox; NULL if the tenant never had it or it is no longer kept. */
const struct sandbox_log *ended_logs_log(const char *tenant, const char *id);
/* How a sandbox ended; NULL as above. tenant NULL: of any tenant. */
const struct sandbox_end *ended_logs_end(const char *tenant, const char *id);
