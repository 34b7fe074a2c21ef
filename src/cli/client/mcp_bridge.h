/* MCP on standard input and output, for programs that start their MCP servers as children. Each
 * line of input is a message, which we pass on to /mcp of a server; the server's answers go out as
 * lines.
 *
 * Several messages may be under way at once. Only `initialize` holds up all others until its answer
 * comes, because the answer brings the session. At the end of the input, messages that are under
 * way may finish. Then the session ends, and with it the sandboxes of the conversation, if we made
 * up its name and so nobody else knows it.
 *
 * Nothing but the protocol goes to standard output. A failure becomes an error answer to the
 * request that failed, and a line on standard error. */
#pragma once

#include <jansson.h>

#include "lib/text/spout.h"
#include "cli/client/client.h"
#include "cli/client/mcp_post.h"

#define MCP_SESSION_MAX 256
#define MCP_VERSION_MAX 32
#define MCP_OUTPUT_HIGH (256u * 1024) /* with so much output waiting, all else waits too */

struct mcp_bridge {
    struct client *client;           /* NULL: settings are missing; see trouble */
    const char *conversation, *path; /* path NULL: the server's default */
    bool own_conversation;
    const char *trouble; /* why nothing works; NULL: all is well */

    struct repl_watch watch;
    struct strbuf url;
    char session[MCP_SESSION_MAX], version[MCP_VERSION_MAX]; /* "" until known */
    struct strbuf in;                                        /* the beginning of a line */
    bool skipping;                                           /* the line is too long: drop it */
    bool input_over;
    struct spout out;
    struct list posts; /* of struct mcp_post */
    size_t n_posts;
    bool initializing;
    bool used; /* a message was sent to the server */
};

/* Runs until the input ends or a signal comes. Returns the exit status. */
int mcp_bridge_run(struct mcp_bridge *b);

/* Writes a message to the client, as one line. */
void mcp_bridge_say(struct mcp_bridge *b, const char *message, size_t len);
/* Answers each request in a message with an error. */
void mcp_bridge_fail(struct mcp_bridge *b, const json_t *message, const char *why);
