/* One message of an MCP client on its way to the server, and what comes back.
 *
 *   posted --JSON, or events one by one--> lines for the client --> over
 *      `--refused, or the connection breaks--> an error for each request in it --> over
 *
 * Closing the connection is how a call is cancelled: the server interrupts it. */
#pragma once

#include <jansson.h>

#include "cli/client/mcp_events.h"
#include "cli/client/repl_watch.h"

struct mcp_bridge;

struct mcp_post {
    struct repl_transfer transfer;
    struct mcp_bridge *bridge;
    CURL *easy;
    json_t *message; /* an object; an array in version 2025-03-26 */
    char *body;
    struct curl_slist *headers;
    bool initialize;

    bool is_stream;
    struct mcp_events events;
    struct strbuf answer; /* that is no stream */
    size_t answered;      /* requests */
    bool held;            /* until our client has read more */
    struct mcp_post *next, **link;
};

/* Takes the message over. */
void mcp_post_begin(struct mcp_bridge *b, json_t *message);
/* No answer is wanted, or possible, any more. */
void mcp_post_drop(struct mcp_post *p);
/* Whether it is the request with this id. */
bool mcp_post_is(const struct mcp_post *p, const json_t *id);
/* The client takes more. */
void mcp_post_go_on(struct mcp_post *p);

/* Calls fn for the id of each request in a message. */
void mcp_each_request(const json_t *message, void (*fn)(void *arg, const json_t *id), void *arg);
