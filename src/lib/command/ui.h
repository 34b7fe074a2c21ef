/* Messages of sandglass to its user: one line each on standard error, prefixed with
 * the program's name. Colours appear on a terminal only, and not when NO_COLOR is set. */
#pragma once

#include "lib/base/base.h"

bool ui_has_colour(int fd);

/* "sandglass: <message>". Control characters of the message are shown as '?', so that a file name
 * cannot drive the terminal or fake a second line. */
void ui_error(const char *fmt, ...) PRINTF(1, 2);
void ui_note(const char *fmt, ...) PRINTF(1, 2);
/* A mistake on the command line: the message, and where to read more. Returns the exit status. */
int ui_usage(const char *verb, const char *message);
