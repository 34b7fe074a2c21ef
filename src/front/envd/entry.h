/* File entries of the agent, turned into the JSON of filesystem.EntryInfo. */
#pragma once

#include "lib/channel/wire.h"
#include "lib/rpc/message.h"

/* Reads one entry (its layout is in wire/agent.h) and stops after it. NULL: the bytes are no
 * entry. */
json_t *entry_read(struct wire_reader *r);
