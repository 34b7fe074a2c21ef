/* Numbers of the protobuf wire format. */
#pragma once

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
