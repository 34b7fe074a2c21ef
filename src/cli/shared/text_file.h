/* Files of text that the command line names: code, environment files, policies. They are bounded,
 * hold no NUL byte, and every refusal says which file and what to do. */
#pragma once

#include "lib/base/err.h"

/* Reads a whole file. `what` names its kind ("code"), `hint` ends the message for a file that is
 * too large. The result is NUL-terminated heap memory. */
int text_file_load(const char *what, const char *path, size_t max, const char *hint, char **ret,
                   size_t *ret_len, struct sg_error *e);
/* The same from an open descriptor, shown to the user as `name`. */
int text_fd_load(const char *what, const char *name, int fd, size_t max, const char *hint,
                 char **ret, size_t *ret_len, struct sg_error *e);

/* Cuts the next line out of a NUL-terminated text: without its end (\n or \r\n) and without blanks
 * around it. NULL at the end of the text. *number counts lines from 1. */
char *text_next_line(char **cursor, unsigned *number);
