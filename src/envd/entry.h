/* Files as filesystem.EntryInfo tells of them. */
#pragma once

#include "channel/wire.h"
#include "rpc/message.h"

/* Reads one entry of channel/ops.h and nothing else; NULL if it is none. */
json_t *entry_read(struct wire_reader *r);
