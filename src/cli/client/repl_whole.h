/* Whether code is whole, so that it can be run, or more lines are to come.
 *
 * A guess from the outside, by brackets, strings, comments and what a line ends with. It knows
 * nothing else about a language, so that it works while somebody types, and for versions of a
 * language that came later. Where it is wrong, code that is not whole is run and the kernel says
 * what is missing; and a blank line ends everything but an open bracket or string. */
#pragma once

#include "lib/base/base.h"

/* `code` are all lines so far, without the last line end. `together`: they came as one piece (a
 * paste, an old cell), so that nobody is going to add to the block at its end. */
bool repl_is_whole(const char *language, const char *code, bool together);
/* How many blanks the next line begins with. */
size_t repl_indent(const char *language, const char *code);

/* Whether it is for the prompt itself: ":help". A colon and a blank is a command of shells. */
bool repl_is_command(const char *code);

/* Shells have words for brackets, and documents inside: a file of its own. */
bool repl_bash_is_whole(const char *code);
