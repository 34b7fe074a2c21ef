/* Environment variables for the program in a sandbox: a set of "NAME=value" strings. Values may be
 * secrets, so no error message ever shows one. */
#pragma once

#include "lib/base/err.h"

#define ENV_LIST_MAX     2048
#define ENV_VARIABLE_MAX (128u * 1024 - 1) /* the longest string that Linux takes */
#define ENV_FILE_MAX     (1024u * 1024)

struct env_list {
    char **v; /* NULL-terminated when n > 0, NULL otherwise */
    size_t n;
};

/* Adds "NAME=value"; a variable of that name is replaced. `what` opens the error message. */
int env_list_set(struct env_list *l, const char *what, const char *assignment, struct sg_error *e);
/* The same, or "NAME" alone: then the value is copied from our own environment. */
int env_list_set_or_copy(struct env_list *l, const char *what, const char *s, struct sg_error *e);
/* Adds the variables of an environment file: lines NAME=value. Blank lines and lines that start
 * with '#' are skipped. A value may stand in single quotes (taken as it is) or double quotes (\n,
 * \t, \", \\ and \$ mean what they mean in a shell). `text` is changed. `path` opens the error
 * message. */
int env_list_parse(struct env_list *l, const char *path, char *text, struct sg_error *e);
bool env_list_has(const struct env_list *l, const char *name);
void env_list_done(struct env_list *l);
