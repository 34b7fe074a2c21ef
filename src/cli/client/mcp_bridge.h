/* MCP on standard input and output, for programs that start their servers: each line is a message,
 * passed on to /mcp of a server, and what that answers comes back as lines.
 *
 * Several messages are under way at once. Only after `initialize` everything waits for its answer:
 * it brings the session. At the end of the input what is under way may end, then the session ends
 * and with it the sandboxes of a conversation that nobody else has the name of.
 *
 * Nothing but the protocol goes to standard output. Whatever goes wrong is an answer to the request
 * that it happened to, and a line on standard error. */
#pragma once

#include <jansson.h>

#include "cli/client/client.h"
#include "cli/client/exec_output.h"
#include "cli/client/mcp_post.h"

#define MCP_SESSION_MAX 256
#define MCP_VERSION_MAX 32

struct mcp_bridge {
    struct client *client;           /* NULL: there are no settings to work with */
    const char *conversation, *path; /* path NULL: the server's default */
    bool own_conversation;
    const char *trouble; /* why nothing works; NULL: it does */

    struct repl_watch watch;
    struct strbuf url;
    char session[MCP_SESSION_MAX], version[MCP_VERSION_MAX]; /* "" until they are settled */
    struct strbuf in;                                        /* a line that is not whole */
    bool skipping;                                           /* ... and is too long */
    bool input_over;
    struct exec_output out;
    struct mcp_post *posts;
    size_t n_posts;
    bool initializing;
    bool used; /* something was sent */
};

/* Until the input ends, or a signal comes. The exit status. */
int mcp_bridge_run(struct mcp_bridge *b);

/* A line for the client. */
void mcp_bridge_say(struct mcp_bridge *b, const char *message, size_t len);
/* An error for each request in a message. */
void mcp_bridge_fail(struct mcp_bridge *b, const json_t *message, const char *why);
