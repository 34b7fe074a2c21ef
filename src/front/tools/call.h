/* What a call of a tool asks for, read and checked. */
#pragma once

#include "front/tools/tools.h"

enum tool_format { FORMAT_JSON, FORMAT_TEXT, FORMAT_CSV, FORMAT_MAX_ };

#define PROGRAM_NAME_MAX 64
#define PARAMETERS_MAX   (1024u * 1024) /* as JSON */

struct tool_call {
    char conversation[CTX_NAME_MAX + 1], path[CTX_NAME_MAX + 1];
    char message[CTX_NAME_MAX + 1];           /* "": none, and no checkpoint */
    char template_name[CTX_TEMPLATE_MAX + 1]; /* "": the setting's */
    const char *kernel;                       /* language whose default kernel runs it */
    json_t *code;                             /* a string; NULL: that of `program` */
    json_t *envs;                             /* object of strings, or NULL */
    uint64_t timeout_ms;
    /* run_analysis */
    char program[PROGRAM_NAME_MAX + 1]; /* "" if the code was given */
    json_t *parameters; /* variables of the cell that puts them into place; NULL: none */
    enum tool_format format;
};

/* -E2BIG: over a limit, which is named. Any other error is of the kind that its status follows
 * from. On success the caller releases it. */
int code_call_read(const struct context_limits *limits, const json_t *arguments,
                   const struct tool_place *place, struct tool_call *ret, struct sg_error *e);
int analysis_call_read(const struct context_limits *limits, const json_t *arguments,
                       const struct tool_place *place, struct tool_call *ret, struct sg_error *e);
void tool_call_done(struct tool_call *c);

/* code.c, for analysis.c: the fields that both have. */
int call_read_place(const json_t *arguments, const struct tool_place *place, struct tool_call *ret,
                    struct sg_error *e);
int call_read_timeout(const json_t *arguments, const struct context_limits *limits,
                      struct tool_call *ret, struct sg_error *e);
/* A string that is not empty and not over the limit. NULL if there is none. */
int call_read_code(const json_t *arguments, const struct context_limits *limits, json_t **ret,
                   struct sg_error *e);
int call_read_envs(const json_t *arguments, json_t **ret, struct sg_error *e);

/* analysis.c: takes the code of `program` over. */
void call_use_program(struct tool_call *c, json_t *code);
/* The cell that makes `parameters` of the variables, in the call's language. */
const char *parameters_code(const struct tool_call *c);

/* programs.c: the code of an analysis that has a name. `code` is the callee's to release; NULL if
 * r is not 0. done may come before it returns. */
typedef void (*program_done)(void *arg, int r, json_t *code, const struct sg_error *e);
void program_load(struct front *f, const char *name, program_done done, void *arg);
