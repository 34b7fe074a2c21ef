/* One message of an MCP client on its way to the server, and the answer to it.
 *
 *   posted --JSON, or events one by one----------> lines for the client ------------> over
 *      `-----refused, or the connection breaks---> an error for each request in it -> over
 *
 * To cancel a call we close its connection: the server then interrupts the call. */
#pragma once

#include <jansson.h>

#include "lib/base/list.h"
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
    struct strbuf answer; /* the answer, if it is no stream */
    size_t answered;      /* how many requests have an answer */
    bool held;            /* waits until the client has read more */
    struct list link;
};

/* Sends a message, and owns it from now on. */
void mcp_post_begin(struct mcp_bridge *b, json_t *message);
/* Ends a post whose answer nobody wants, or which can have no answer, any more. */
void mcp_post_drop(struct mcp_post *p);
/* Whether this post is the request with this id. */
bool mcp_post_is(const struct mcp_post *p, const json_t *id);
/* Resumes a post that was held: the client has read enough to take more. */
void mcp_post_go_on(struct mcp_post *p);
