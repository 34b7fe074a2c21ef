/* A tool at work for a client: tools/call.
 *
 *   begun --mcp_call_done--> answered
 *     |--notifications/cancelled--> no answer
 *     `--the client has gone-----> nobody to answer
 *
 * A tool begins its work in mcp_tool.begin and ends it with mcp_call_done, perhaps at once. If the
 * call is cancelled or the client goes, on_abandon asks the tool to end its work, and the call is
 * gone after that. */
#pragma once

#include "front/e2b/field.h"
#include "front/mcp/exchange.h"
#include "front/mcp/result.h"
#include "front/tools/tools.h"

/* The key in `_meta` of a call that says which message of the conversation it belongs to. */
#define MESSAGE_META "sandglass/messageId"

#define CALL_LINE_MAX 200 /* bytes of a line of output in a progress message */

struct mcp_call;

/* An argument of a tool, as its schema shows it. */
struct mcp_field {
    const char *name, *type, *description;
    bool required;
    const char *values; /* the values that it may have, a JSON array; NULL: any */
};
/* The two that tools have which work in the sandbox of a path. */
#define MCP_CONVERSATION                                                                          \
    {                                                                                             \
        "conversationId", "string", "The conversation. Default: this session's own.", false, NULL \
    }
#define MCP_PATH                                                                        \
    {                                                                                   \
        "pathId", "string", "The path of the conversation. Default: main.", false, NULL \
    }

struct mcp_tool {
    const char *name, *title;
    /* NULL: the description and schema of front/tools/tools.h for `runs`. */
    const char *description;
    enum tool runs;
    json_t *(*schema)(void);
    const struct mcp_field *fields; /* in place of `schema`; the last one has no name */
    void (*begin)(struct mcp_call *c);
    /* Hints for the client's user. */
    bool reads_only, destroys, repeatable, reaches_out;
};

struct mcp_call {
    struct exchange *x;
    const struct mcp_tool *tool;
    json_t *id, *token;      /* token NULL: the client wants no progress */
    const json_t *arguments; /* an object; only while the tool begins */
    struct fields in;        /* its fields */
    struct sg_error wrong;   /* with one of them */
    /* Defaults for arguments that name none; only while the tool begins. `conversation` may be
     * NULL, and so may `message`, which the client says for each call (MESSAGE_META). */
    const char *conversation, *path, *message;

    /* Set by the tool. */
    void *work;
    void (*on_abandon)(struct mcp_call *c);
    char line[CALL_LINE_MAX]; /* the last line of its output */
    size_t line_len;

    uint64_t began_ms;
    struct list of_exchange, of_all;
};

/* Answers m, a request for tools/call, now or later. */
void mcp_call_begin(struct exchange *x, const struct message *m);
/* Ends the call. The result must be complete: result_end. Frees the result. */
void mcp_call_done(struct mcp_call *c, struct result *r);
/* Ends the call with an error that is one text. */
void mcp_call_fail(struct mcp_call *c, const char *fmt, ...) PRINTF(2, 3);
/* Ends the call without an answer: nobody wants it. */
void mcp_call_abandon(struct mcp_call *c);
void mcp_call_tell_progress(struct mcp_call *c);

/* notifications/cancelled: cancels a call with this id in the same session. */
void calls_cancel(struct exchange *x, const json_t *id);
/* Ends all calls of a session. */
void calls_end(const char *session);

/* ---- arguments ------------------------------------------------------------------------------- */

/* Whether all arguments that were read so far are right. False: the call has been answered. */
bool mcp_call_read(struct mcp_call *c);
/* The conversation and path that a call means. Also checks that the call has no other arguments
 * than the tool's fields. */
void mcp_call_place(struct mcp_call *c, const char **ret_conversation, const char **ret_path);
/* A number in a range. */
uint64_t mcp_call_number(struct mcp_call *c, const char *name, uint64_t min, uint64_t max,
                         uint64_t fallback);
