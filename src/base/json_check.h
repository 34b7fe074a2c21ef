/* Whether text of unknown origin is JSON, for what passes it on without looking inside. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* One object and nothing else, strictly as RFC 8259 has it: valid UTF-8, no control characters in
 * strings, at most 64 levels. Blanks around it are allowed. */
bool json_check_object(const char *text, size_t len);
