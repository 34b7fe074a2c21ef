/* A tool at work for a client: tools/call.
 *
 *   begun --mcp_call_done--> answered
 *     |--notifications/cancelled--> no answer
 *     `--the client has gone-----> nobody to answer
 *
 * A tool begins its work in mcp_tool.begin and ends it with mcp_call_done, perhaps at once. In the
 * other two cases the call asks the work to end, through on_abandon, and is gone after that. */
#pragma once

#include "front/mcp/exchange.h"
#include "front/mcp/result.h"
#include "front/tools/tools.h"

/* In `_meta` of a call: which message of the conversation it belongs to. */
#define MESSAGE_META "sandglass/messageId"

#define CALL_LINE_MAX 200 /* bytes of a line of output in news of progress */

struct mcp_call;

struct mcp_tool {
    const char *name, *title;
    /* NULL, both: those of tools.h for `runs`. */
    const char *description;
    json_t *(*schema)(void);
    enum tool runs;
    void (*begin)(struct mcp_call *c);
    /* Hints for the client's user. */
    bool reads_only, destroys, repeatable, reaches_out;
};

struct mcp_call {
    struct exchange *x;
    const struct mcp_tool *tool;
    json_t *id, *token;      /* token NULL: no news of progress */
    const json_t *arguments; /* an object; while the tool begins */
    /* For arguments that name none; while the tool begins. conversation may be NULL, and message,
     * which is the client's to say for each call (MESSAGE_META), too. */
    const char *conversation, *path, *message;

    /* The tool's. */
    void *work;
    void (*on_abandon)(struct mcp_call *c);
    char line[CALL_LINE_MAX]; /* the last of its output */
    size_t line_len;

    uint64_t began_ms;
    struct mcp_call *next, **link;         /* of the exchange */
    struct mcp_call *all_next, **all_link; /* of all */
};

/* Answers m, a request for tools/call, now or later. */
void mcp_call_begin(struct exchange *x, const struct message *m);
/* The end. The result must be whole: result_end. Frees it. */
void mcp_call_done(struct mcp_call *c, struct result *r);
/* The same for one text. */
void mcp_call_fail(struct mcp_call *c, const char *fmt, ...) PRINTF(2, 3);
/* Nobody wants the answer. */
void mcp_call_abandon(struct mcp_call *c);
static inline struct mcp_call *mcp_call_next(struct mcp_call *c)
{
    return c->next;
}
void mcp_call_tell_progress(struct mcp_call *c);

/* notifications/cancelled: of the same session. */
void calls_cancel(struct exchange *x, const json_t *id);
/* All of a session. */
void calls_end(const char *session);

/* ---- arguments ------------------------------------------------------------------------------- */

/* The conversation and path that a call means. False: it was answered. */
bool mcp_call_place(struct mcp_call *c, const char **ret_conversation, const char **ret_path);
/* An optional number in a range; *ret stays as it is if it is not given. False: it was answered. */
bool mcp_call_number(struct mcp_call *c, const char *name, uint64_t min, uint64_t max,
                     uint64_t *ret);
