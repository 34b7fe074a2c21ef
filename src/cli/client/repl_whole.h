/* Decides whether code is whole and can be run, or whether more lines are to come.
 *
 * This is a guess from brackets, strings, comments and the ends of lines. It knows nothing else
 * about a language, so that it works while the user types and for later versions of a language. If
 * the guess is wrong, incomplete code is run and the kernel says what is missing. A blank line ends
 * everything but an open bracket or string. */
#pragma once

#include "lib/base/base.h"

/* `code` has all lines so far, without the last line end. `together`: they came as one piece (a
 * paste, an old cell), so the user is not about to add to the block at its end. */
bool repl_is_whole(const char *language, const char *code, bool together);
/* How many blanks the next line begins with. */
size_t repl_indent(const char *language, const char *code);

/* Whether the line is a command for the prompt itself, such as ":help". A colon and a blank is a
 * command of shells. */
bool repl_is_command(const char *code);

/* repl_is_whole for shells. Shells have words for brackets, and here-documents, so they have a file
 * of their own. */
bool repl_bash_is_whole(const char *code);
