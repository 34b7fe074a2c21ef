/* Files as filesystem.EntryInfo tells of them. */
#pragma once

#include "lib/channel/wire.h"
#include "lib/rpc/message.h"

/* Reads one entry of wire/agent.h and nothing else; NULL if it is none. */
json_t *entry_read(struct wire_reader *r);
