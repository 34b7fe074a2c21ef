/* The names of the public header's enumerations. */
#include "lib/base/err.h"

static const char *const error_kinds[] = {
    [SG_ERR_NONE] = "none",       [SG_ERR_INTERNAL] = "internal",
    [SG_ERR_INVALID] = "invalid", [SG_ERR_NOT_FOUND] = "not_found",
    [SG_ERR_DENIED] = "denied",   [SG_ERR_UNSUPPORTED] = "unsupported",
    [SG_ERR_LIMIT] = "limit",     [SG_ERR_GONE] = "gone",
};
_Static_assert(ARRAY_SIZE(error_kinds) == SG_ERR_MAX_, "a name for every error kind");

static const char *const statuses[] = {
    [SG_STATUS_SUCCESS] = "success",
    [SG_STATUS_EXECUTION_ERROR] = "execution_error",
    [SG_STATUS_TIMEOUT] = "timeout",
    [SG_STATUS_SETUP_ERROR] = "setup_error",
};
_Static_assert(ARRAY_SIZE(statuses) == SG_STATUS_MAX_, "a name for every status");

static const char *const limits[] = {
    [SG_LIMIT_NONE] = NULL,   [SG_LIMIT_TIME] = "time", [SG_LIMIT_MEMORY] = "memory",
    [SG_LIMIT_PIDS] = "pids", [SG_LIMIT_DISK] = "disk", [SG_LIMIT_OUTPUT] = "output",
};
_Static_assert(ARRAY_SIZE(limits) == SG_LIMIT_MAX_, "a name for every limit");

const char *sg_error_kind_name(enum sg_error_kind kind)
{
    return (unsigned)kind < ARRAY_SIZE(error_kinds) ? error_kinds[kind] : "internal";
}

const char *sg_status_name(enum sg_status status)
{
    return (unsigned)status < ARRAY_SIZE(statuses) ? statuses[status] : "setup_error";
}

const char *sg_limit_name(enum sg_limit limit)
{
    return (unsigned)limit < ARRAY_SIZE(limits) ? limits[limit] : NULL;
}
