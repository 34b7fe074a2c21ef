/* The languages that code can be in: one row each, for every program.
 *
 *   the agent           which kernel runs it, and what must be installed
 *   the engine          how code of it runs as a program, and as a cell of `sandglass run`
 *   the front's tools   its name in calls and schemas, and the command for a program
 *   the prompt          when a cell is whole
 *
 * A language that has no row can still be used if a Jupyter kernel for it is installed. */
#pragma once

#include "lib/base/base.h"

/* The names of the languages with a program: of the JSON schemas of tools, and of the help. */
#define LANGUAGES_JSON     "\"python\",\"javascript\",\"typescript\",\"bash\",\"sh\""
#define LANGUAGES_HELP     "python (default), javascript, typescript, bash"
#define LANGUAGE_NAMES_MAX 128

enum kernel_program { PROGRAM_NONE, PROGRAM_PYTHON, PROGRAM_BRIDGE, PROGRAM_NODE };

/* As much syntax as the prompt needs to tell a whole cell: see cli/client/repl_whole.h. */
struct language_syntax {
    const char *quotes;    /* characters that begin and end a string */
    const char *long_ones; /* the quotes whose strings may span lines */
    bool triple;           /* three quotes begin a string that may span lines */
    bool hash;     /* comments begin with '#'; else with two slashes, or are between slash-star */
    bool template; /* `text ${code} text` */
    bool regex;    /* a slash may begin a regular expression */
    bool blocks;   /* blocks are made by a colon and indentation; a blank line ends them */
    const char *open_ends; /* after a line that ends with one of these, another line follows */
};

struct language {
    const char *name;
    const char *short_name;     /* another name for its kernel; NULL: none */
    const char *suffixes;       /* space-separated; the first one names main.<suffix> */
    const char *main;           /* the file that a tool puts code into */
    const char *program[6];     /* runs the file "@" as a program of its own; empty: cells only */
    const char *cell[6];        /* runs it as a cell, by a kernel; empty: same as `program` */
    enum kernel_program kernel; /* PROGRAM_NONE: it is a short name of another row */
    const char *needs[2];       /* one of these must be installed */
    struct language_syntax syntax;
};

/* Those of enum sg_language come first, in its order; then the other ones with a program. */
extern const struct language languages[];
extern const size_t n_languages, n_languages_with_program;

/* The row of that name, or NULL. Short names do not count. */
const struct language *language_find(const char *name);
/* The full name if this is a short one; "python" for "". */
const char *language_full_name(const char *name);
/* Whether the path ends in a suffix of the language. */
bool language_has_suffix(const struct language *l, const char *path);
/* "a, b or c": the names of the first n rows. */
const char *language_names(size_t n, char buf[LANGUAGE_NAMES_MAX]);
