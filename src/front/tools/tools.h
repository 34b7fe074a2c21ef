/* The tools for language models: code in the sandbox of a path of a conversation.
 *
 *   run.c        a run: the path's sandbox, a checkpoint if that is asked for, the cell, what came
 *                of it
 *   code.c       run_code: what is asked for       analysis.c   run_analysis: the same
 *   programs.c   its programs: ours, a folder's    schema.c     the tools, as models hear of them
 *   gather.c     the lines of a cell, gathered     parsed.c     output by its format; csv.c
 *   result.c     what came of a run, as JSON
 *   routes.c     /v1/tools/NAME: JSON, or a stream of events; outlet.c: to slow clients
 *   once.c       a program in a sandbox of its own, which ends with it; once_request.c: what is
 *                asked for; execute.c: /v1/execute
 *
 * A run is the same whoever asked: HTTP, a stream, MCP. It tells of lines as they come (on_line),
 * and of the whole in the end (on_done). */
#pragma once

#include "lib/text/json.h"
#include "front/contexts/context.h"
#include "front/core/front.h"
#include "lib/sanitise/sanitise.h"
#include "front/store/store.h"

#define TOOL_OUTPUT_MAX  (1024u * 1024)      /* of stdout, and of stderr, in an answer */
#define TOOL_RESULTS_MAX (32u * 1024 * 1024) /* of all results */
/* Of what tool_result_json writes: results, what is parsed, and text that becomes longer by
 * escapes. */
#define TOOL_ANSWER_MAX (128u * 1024 * 1024)

enum tool { TOOL_RUN_CODE, TOOL_RUN_ANALYSIS, TOOL_MAX_ };

/* What came of a run. Texts are valid during on_done. */
struct tool_result {
    int status; /* HTTP: 200, or why it did not run: then `refusal` says it */
    struct sg_error refusal;
    const char *elsewhere; /* with status 307: the server that has the path */
    bool success;
    const struct strbuf *out, *err; /* UTF-8, cut at TOOL_OUTPUT_MAX */
    bool out_cut, err_cut;
    const char *results; /* JSON: an array of result objects as E2B has them, without "type" */
    const char *error;   /* JSON: {"name","value","traceback"}, or NULL */
    /* 0; 1: an error; 124: out of time; of a shell, or a kernel that died: its own */
    int exit_code;
    uint64_t ms; /* from the call to its end */
    const char *sandbox_id, *context;
    bool was_created, replaced, kept_lost;
    /* The checkpoint before the message, or why there is none; all NULL: no message was named. */
    const char *message, *checkpoint, *skipped;
    const char *sanitised; /* JSON: what the sanitiser has found, by kinds; NULL: nothing */
    /* run_analysis only. JSON, or NULL: the value of the cell, and its output by the format. */
    const char *result, *parsed;
    const char *parse_error; /* NULL if it could be parsed */
};

struct tool_run;
struct tool_listener {
    void *arg;
    struct sanitise_level sanitise; /* the call's own word, or none */
    bool forced;                    /* the application calls, and no model: for traces */
    /* One line: a JSON object with "type", without the newline. The first is of type "context" and
     * says where the code runs, the others are the cell's. False: no more until tool_run_resume,
     * but for those that have come already. NULL: not wanted. Must not cancel. */
    bool (*on_line)(void *arg, const char *line, size_t len);
    /* The last callback, exactly once, unless tool_run_cancel came first. Never before tool_begin
     * returned. */
    void (*on_done)(void *arg, const struct tool_result *r);
};

/* What the application says of a call and the model does not: for arguments that name none. NULL,
 * each: there is nothing to fall back to. */
struct tool_place {
    const char *conversation, *path, *message;
};
/* `arguments`: an object as the schema says, borrowed. What is wrong with them is told by on_done
 * too. */
struct tool_run *tool_begin(struct front *f, const struct store_tenant *tenant, enum tool tool,
                            const json_t *arguments, const struct tool_place *place,
                            const struct tool_listener *listener);
/* run_code in this very sandbox, which is none of a path: a candidate of `context`. */
struct tool_run *tool_begin_in(struct sandbox *b, const struct store_tenant *tenant,
                               const char *context, const json_t *arguments,
                               const struct tool_place *place,
                               const struct tool_listener *listener);
void tool_run_resume(struct tool_run *r);
/* Interrupts the cell; no more callbacks. */
void tool_run_cancel(struct tool_run *r);

const char *tool_name(enum tool t);
const char *tool_description(enum tool t);
/* A JSON schema of the arguments; the caller's to release. */
json_t *tool_schema(enum tool t);
/* Leaves a property out, for calls that are bound to a conversation or a path. */
void tool_schema_bind(json_t *schema, const char *property);
/* It did not run because a sandbox cannot be had now: the conversation goes on without the tool. */
bool tool_unavailable(const struct tool_result *r);
/* The object that /v1/tools/NAME answers. Of one that did not run: {"code", "message",
 * "requestId"}; request NULL: without the last. */
void tool_result_json(struct json *j, enum tool t, const struct tool_result *r,
                      const char *request);

/* ---- code without a context: execute_code ---------------------------------------------------- */

#define ONCE_OUTPUT_MAX (8u * 1024 * 1024) /* that outputBytes can ask for */

enum once_outcome { ONCE_SUCCESS, ONCE_TIMEOUT, ONCE_EXECUTION_ERROR, ONCE_SETUP_ERROR, ONCE_MAX_ };

/* What came of a program. Texts are valid during the callback. */
struct once_result {
    int status; /* HTTP: 200, or why there was no sandbox for it: then `refusal` says it */
    struct sg_error refusal;
    enum once_outcome outcome;
    const struct strbuf *out, *err; /* bytes as they came */
    bool out_cut, err_cut;
    int exit_code;                    /* of one that was killed: 128 + signal; 124: out of time */
    uint64_t ms;                      /* that the program ran */
    const char *message;              /* NULL: nothing went wrong */
    const char *session, *sandbox_id; /* NULL: none was named; none was made */
    uint64_t cpu_us, memory_bytes, disk_bytes; /* used; memory: the most at a time */
    const char *sanitised;                     /* as in struct tool_result */
};

struct once;
typedef void (*once_done)(void *arg, const struct once_result *r);
/* Makes a sandbox, runs a program in it, and ends it. Like tool_begin: arguments are borrowed, done
 * is the last callback and comes exactly once, not before this returns, unless once_cancel came
 * first. sanitise: the call's own word, or NULL. */
struct once *once_begin(struct front *f, const struct store_tenant *tenant, const json_t *arguments,
                        const struct sanitise_level *sanitise, once_done done, void *arg);
void once_cancel(struct once *o);
json_t *once_schema(void); /* of the arguments; the caller's to release */
extern const char once_description[];
/* The object that /v1/execute answers; request as above. */
void once_result_json(struct json *j, const struct once_result *r, const char *request);

/* result.c, for execute.c: what both kinds of answers have. */
void result_put_sanitised(struct json *j, const char *sanitised);
/* True: it is `unavailable`. */
bool result_put_refusal(struct json *j, int status, const struct sg_error *e, const char *request);
void result_put_cut(struct json *j, bool out, bool err);

/* The routes: of front/v1/routes.c's table. */
void tools_list(struct http_req *req);
void tools_run_code(struct http_req *req);
void tools_run_analysis(struct http_req *req);
void execute_once(struct http_req *req);
