/* Keys that libedit does not have by itself: pastes, and moving inside a cell of several lines. */
#pragma once

#include <histedit.h>

void repl_keys_bind(EditLine *el);
