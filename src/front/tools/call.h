/* The arguments of a tool's call, read and checked. */
#pragma once

#include "front/e2b/field.h"
#include "front/tools/tools.h"

enum tool_format { FORMAT_JSON, FORMAT_TEXT, FORMAT_CSV, FORMAT_MAX_ };

#define PROGRAM_NAME_MAX 64
#define PARAMETERS_MAX   (1024u * 1024) /* as JSON */

struct tool_call {
    char conversation[CTX_NAME_MAX + 1], path[CTX_NAME_MAX + 1];
    char message[CTX_NAME_MAX + 1];           /* "": none, so no checkpoint */
    char template_name[CTX_TEMPLATE_MAX + 1]; /* "": the one in the settings */
    const char *kernel;                       /* language whose default kernel runs the code */
    json_t *code;                             /* a string; NULL: the code of `program` */
    json_t *envs;                             /* object of strings, or NULL */
    uint64_t timeout_ms;
    /* run_analysis */
    char program[PROGRAM_NAME_MAX + 1]; /* "": the call has code of its own */
    json_t *parameters; /* variables of the cell that sets `parameters`; NULL: none */
    enum tool_format format;
};

/* -E2BIG: over a limit, which the message names. For any other error, the HTTP status follows from
 * its kind. On success the caller releases *ret. */
int code_call_read(const struct context_limits *limits, const json_t *arguments,
                   const struct tool_place *place, struct tool_call *ret, struct sg_error *e);
int analysis_call_read(const struct context_limits *limits, const json_t *arguments,
                       const struct tool_place *place, struct tool_call *ret, struct sg_error *e);
void tool_call_done(struct tool_call *c);

/* Finds the kernel for a language that a call names. */
int tool_language(const char *name, const char **ret_kernel, struct sg_error *e);
/* code.c, for the other tools: the fields that several have. */
void call_read_place(struct fields *in, const struct tool_place *place, struct tool_call *ret);
uint64_t call_read_timeout(struct fields *in, const struct context_limits *limits);
/* Reads a string that is not empty and not over the limit. NULL: there is none. */
json_t *call_read_code(struct fields *in, const struct context_limits *limits);
json_t *call_read_envs(struct fields *in);

/* analysis.c: the call runs this code, the code of `program`. Takes it over. */
void call_use_program(struct tool_call *c, json_t *code);
/* The code of the cell that makes `parameters` of the variables, in the call's language. */
const char *parameters_code(const struct tool_call *c);

/* programs.c: loads the code of a named analysis. The callback releases `code`, which is NULL if r
 * is not 0. `done` may be called before program_load returns. */
typedef void (*program_done)(void *arg, int r, json_t *code, const struct sg_error *e);
void program_load(struct front *f, const char *name, program_done done, void *arg);
