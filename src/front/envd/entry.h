/* File entries of the agent, turned into the JSON of filesystem.EntryInfo. */
#pragma once

#include "lib/channel/wire.h"
#include "lib/rpc/message.h"

/* Reads one entry (its layout is in wire/agent.h) and stops after it. NULL: the bytes are no
 * entry. */
json_t *entry_read(struct wire_reader *r);
/* What /files tells of a file that was written. Takes the entry over. */
json_t *entry_of_written(json_t *entry);
