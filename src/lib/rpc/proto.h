/* Numbers of the protobuf wire format. */
#pragma once

#include "lib/rpc/codec.h"

enum wire_type {
    WIRE_VARINT = 0,
    WIRE_FIXED64 = 1,
    WIRE_BYTES = 2,
    WIRE_GROUP = 3,
    WIRE_GROUP_END = 4,
    WIRE_FIXED32 = 5
};

/* A map is a repeated message of these two fields. */
#define MAP_KEY   1
#define MAP_VALUE 2

/* Whether values of the type are numbers on the wire. */
static inline bool is_varint(enum rpc_type type)
{
    return type != RPC_STRING && type != RPC_BYTES && type != RPC_MESSAGE && type != RPC_MAP;
}
