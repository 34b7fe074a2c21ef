/* Keys that libedit itself does not know: pastes, and moving inside a cell of several lines. */
#pragma once

#include <histedit.h>

void repl_keys_bind(EditLine *el);
