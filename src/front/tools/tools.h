/* The tools for language models: code in the sandbox of a path of a conversation.
 *
 *   run.c            a run: the path's sandbox, a checkpoint if asked for, the cells, the result
 *   code.c           run_code: reads its arguments
 *   analysis.c       run_analysis: reads its arguments
 *   programs.c       the named programs of run_analysis: built in, or in a folder
 *   gather.c         the lines of a cell, gathered
 *   budget.c         limits what all runs gather together
 *   parsed.c         output by its format;  csv.c: tables
 *   result.c         the result of a run, as JSON
 *   schema.c         the tools as models see them
 *   routes.c         /v1/tools/NAME: JSON, or a stream of events;  outlet.c: to slow clients
 *   once.c           a program in a sandbox of its own, which ends with it
 *   once_request.c   reads the arguments of once.c;  execute.c: /v1/execute
 *
 * A run is the same for all clients: HTTP, a stream, MCP. It passes lines on as they come
 * (on_line), and the result at the end (on_done). */
#pragma once

#include "lib/base/languages.h"
#include "lib/text/json.h"
#include "front/contexts/context.h"
#include "front/core/front.h"
#include "lib/sanitise/sanitise.h"
#include "front/store/store.h"

#define TOOL_OUTPUT_MAX  (1024u * 1024)      /* bytes of stdout, and of stderr, in an answer */
#define TOOL_RESULTS_MAX (32u * 1024 * 1024) /* bytes of all results together */
/* Bytes that tool_result_json may write: results, parsed output, and text that escapes make
 * longer. */
#define TOOL_ANSWER_MAX (128u * 1024 * 1024)

enum tool { TOOL_RUN_CODE, TOOL_RUN_ANALYSIS, TOOL_MAX_ };

/* The result of a run. Texts are valid during on_done. */
struct tool_result {
    int status; /* for HTTP: 200; otherwise the code did not run, and `refusal` says why */
    struct sg_error refusal;
    const char *elsewhere; /* with status 307: the server that has the path */
    bool success;
    const struct strbuf *out, *err; /* UTF-8, cut at TOOL_OUTPUT_MAX */
    bool out_cut, err_cut;
    const char *results; /* JSON: an array of result objects as E2B has them, without "type" */
    const char *error;   /* JSON: {"name","value","traceback"}, or NULL */
    /* 0: success; 1: an error; 124: out of time. A shell, and a kernel that died, have their
     * own. */
    int exit_code;
    uint64_t ms; /* from the call to its end */
    const char *sandbox_id, *context;
    bool was_created, replaced, kept_lost;
    /* The checkpoint before the message, or why there is none; all NULL: no message was named. */
    const char *message, *checkpoint, *skipped;
    const char *sanitised; /* JSON: findings of the output filter, by kind; NULL: none */
    /* run_analysis only. JSON, or NULL: the value of the cell, and its output by the format. */
    const char *result, *parsed;
    const char *parse_error; /* NULL if it could be parsed */
    void *made;              /* by tool_listener.make, and on_done's from then on; NULL: nothing */
};

struct output_filter;
struct tool_run;
struct tool_listener {
    void *arg;
    struct sanitise_level sanitise; /* the mode that the call asks for, or none */
    bool forced;                    /* the application calls, not a model: for traces */
    /* One line: a JSON object with "type", without the newline. The first has the type "context"
     * and says where the code runs, the others are the cell's. False: no more until
     * tool_run_resume, but lines that have come already still follow. NULL: lines are not wanted.
     * Must not cancel. */
    bool (*on_line)(void *arg, const char *line, size_t len);
    /* Makes what on_done needs, such as the answer, of the result of code that ran; on a thread if
     * the result is long, so it sees the result and `form` only. `drop` frees what was made if the
     * run is cancelled. Both NULL: nothing is made. */
    void *(*make)(unsigned form, enum tool t, const struct tool_result *r);
    void (*drop)(void *made);
    unsigned form;
    /* The last callback, exactly once, unless tool_run_cancel came first. Never before tool_begin
     * returned. */
    void (*on_done)(void *arg, const struct tool_result *r);
};

/* Names that the application gives for a call whose arguments have none. Each may be NULL: there is
 * no such default. */
struct tool_place {
    const char *conversation, *path, *message;
};
/* `arguments` is an object that follows the schema; it is borrowed. Errors in it are told through
 * on_done, too. */
struct tool_run *tool_begin(struct front *f, const struct store_tenant *tenant, enum tool tool,
                            const json_t *arguments, const struct tool_place *place,
                            const struct tool_listener *listener);
/* run_code in exactly this sandbox, which belongs to no path: a candidate of `context`. */
struct tool_run *tool_begin_in(struct sandbox *b, const struct store_tenant *tenant,
                               const char *context, const json_t *arguments,
                               const struct tool_place *place,
                               const struct tool_listener *listener);
void tool_run_resume(struct tool_run *r);
/* Interrupts the cell; no more callbacks. */
void tool_run_cancel(struct tool_run *r);

const char *tool_name(enum tool t);
const char *tool_description(enum tool t);
/* A JSON schema of the arguments. The caller releases it. */
json_t *tool_schema(enum tool t);
/* Leaves out a property, for calls that are bound to a conversation or a path. */
void tool_schema_bind(json_t *schema, const char *property);
/* Whether the code did not run because no sandbox can be had now: the conversation should go on
 * without the tool. */
bool tool_unavailable(int status);
/* Writes the object that /v1/tools/NAME answers. For a call that did not run: {"code", "message",
 * "requestId"}; without the last if `request` is NULL. */
void tool_result_json(struct json *j, enum tool t, const struct tool_result *r,
                      const char *request);

/* ---- code without a context: execute_code ---------------------------------------------------- */

#define ONCE_OUTPUT_MAX (8u * 1024 * 1024) /* the most that outputBytes can ask for */

enum once_outcome { ONCE_SUCCESS, ONCE_TIMEOUT, ONCE_EXECUTION_ERROR, ONCE_SETUP_ERROR, ONCE_MAX_ };

/* The result of a program. Texts are valid during the callback. */
struct once_result {
    int status; /* for HTTP: 200; otherwise there was no sandbox, and `refusal` says why */
    struct sg_error refusal;
    enum once_outcome outcome;
    const struct strbuf *out, *err; /* bytes as they came */
    bool out_cut, err_cut;
    int exit_code;                    /* 128 + signal if the program was killed; 124: out of time */
    uint64_t ms;                      /* time that the program ran */
    const char *message;              /* NULL: nothing went wrong */
    const char *session, *sandbox_id; /* NULL: the call named none; none was made */
    uint64_t cpu_us, memory_bytes, disk_bytes; /* used; of memory: the peak */
    const char *sanitised;                     /* as in struct tool_result */
};

struct once;
typedef void (*once_done)(void *arg, const struct once_result *r);
/* Makes a sandbox, runs a program in it, and ends the sandbox. As with tool_begin, `arguments` are
 * borrowed. `done` is the last callback; it comes exactly once, and not before once_begin returns,
 * unless once_cancel came first. `sanitise`: the mode that the call asks for, or NULL. */
struct once *once_begin(struct front *f, const struct store_tenant *tenant, const json_t *arguments,
                        const struct sanitise_level *sanitise, once_done done, void *arg);
void once_cancel(struct once *o);
json_t *once_schema(void); /* schema of the arguments; the caller releases it */
extern const char once_description[];
/* Writes the object that /v1/execute answers; `request` as above. */
void once_result_json(struct json *j, const struct once_result *r, const char *request);

/* result.c: the length of the first `max` bytes of a text, less those of a character that would be
 * cut. */
size_t text_cut(const char *text, size_t len, size_t max);
/* For run.c and once.c: writes the findings of an output filter. NULL: there are none. */
const char *result_sanitised(const struct output_filter *o, struct strbuf *ret);
/* For execute.c: the parts that both kinds of answers have. */
void result_put_sanitised(struct json *j, const char *sanitised);
/* True: the refusal says `unavailable`: no sandbox can be had now. */
bool result_put_refusal(struct json *j, int status, const struct sg_error *e, const char *request);
void result_put_cut(struct json *j, bool out, bool err);

/* The handlers in the table of front/v1/routes.c. */
#define ONCE_BODY_MAX (16u * 1024 * 1024) /* of /v1/execute */
void tools_list(struct http_req *req);
void tools_run_code(struct http_req *req);
void tools_run_analysis(struct http_req *req);
void execute_once(struct http_req *req);
