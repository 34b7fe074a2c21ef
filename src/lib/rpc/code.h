/* The error codes of Connect: a name in the body, and a status on a unary answer. */
#pragma once

enum rpc_code {
    RPC_OK,
    RPC_CANCELED,
    RPC_UNKNOWN,
    RPC_INVALID_ARGUMENT,
    RPC_DEADLINE_EXCEEDED,
    RPC_NOT_FOUND,
    RPC_ALREADY_EXISTS,
    RPC_PERMISSION_DENIED,
    RPC_RESOURCE_EXHAUSTED,
    RPC_FAILED_PRECONDITION,
    RPC_ABORTED,
    RPC_OUT_OF_RANGE,
    RPC_UNIMPLEMENTED,
    RPC_INTERNAL,
    RPC_UNAVAILABLE,
    RPC_DATA_LOSS,
    RPC_UNAUTHENTICATED,
    RPC_CODE_MAX_
};

const char *rpc_code_name(enum rpc_code code);
int rpc_code_status(enum rpc_code code);
