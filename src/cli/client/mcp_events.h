/* Server-sent events: the data of each, out of pieces cut anywhere. What else an event has is not
 * used here: its name, its id, comments that keep the connection alive. */
#pragma once

#include "lib/text/strbuf.h"

#define MCP_EVENT_MAX (16u * 1024 * 1024)

struct mcp_events {
    struct strbuf line, data;
    bool has_data;
    bool after_cr; /* a line feed that comes now belongs to the carriage return before */
};

void mcp_events_init(struct mcp_events *r);
void mcp_events_done(struct mcp_events *r);
/* Calls fn for each event that is completed. -E2BIG: one is longer than MCP_EVENT_MAX. */
int mcp_events_feed(struct mcp_events *r, const char *p, size_t len,
                    void (*fn)(void *arg, const char *data, size_t len), void *arg);
