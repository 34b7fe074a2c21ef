#include "lib/rpc/code.h"

#include <assert.h>

#include "lib/base/base.h"

static const struct {
    const char *name;
    int status;
} codes[] = {
    [RPC_OK] = {"ok", 200},
    [RPC_CANCELED] = {"canceled", 499},
    [RPC_UNKNOWN] = {"unknown", 500},
    [RPC_INVALID_ARGUMENT] = {"invalid_argument", 400},
    [RPC_DEADLINE_EXCEEDED] = {"deadline_exceeded", 504},
    [RPC_NOT_FOUND] = {"not_found", 404},
    [RPC_ALREADY_EXISTS] = {"already_exists", 409},
    [RPC_PERMISSION_DENIED] = {"permission_denied", 403},
    [RPC_RESOURCE_EXHAUSTED] = {"resource_exhausted", 429},
    [RPC_FAILED_PRECONDITION] = {"failed_precondition", 400},
    [RPC_ABORTED] = {"aborted", 409},
    [RPC_OUT_OF_RANGE] = {"out_of_range", 400},
    [RPC_UNIMPLEMENTED] = {"unimplemented", 501},
    [RPC_INTERNAL] = {"internal", 500},
    [RPC_UNAVAILABLE] = {"unavailable", 503},
    [RPC_DATA_LOSS] = {"data_loss", 500},
    [RPC_UNAUTHENTICATED] = {"unauthenticated", 401},
};
static_assert(ARRAY_SIZE(codes) == RPC_CODE_MAX_, "a row for each code");

const char *rpc_code_name(enum rpc_code code)
{
    return codes[code].name;
}

int rpc_code_status(enum rpc_code code)
{
    return codes[code].status;
}
