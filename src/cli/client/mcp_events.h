/* Reads server-sent events from pieces that may be cut anywhere, and hands on the data of each. The
 * rest of an event is ignored: its name, its id, and comments that keep the connection alive. */
#pragma once

#include "lib/text/strbuf.h"

#define MCP_EVENT_MAX (16u * 1024 * 1024)

struct mcp_events {
    struct strbuf line, data;
    bool has_data;
    bool after_cr; /* the next line feed belongs to a carriage return before it */
};

void mcp_events_init(struct mcp_events *r);
void mcp_events_done(struct mcp_events *r);
/* Takes a piece and calls fn for each event that it completes. -E2BIG: an event is longer than
 * MCP_EVENT_MAX. */
int mcp_events_feed(struct mcp_events *r, const char *p, size_t len,
                    void (*fn)(void *arg, const char *data, size_t len), void *arg);
