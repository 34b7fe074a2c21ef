/* The caller's terminal while a program runs on a pseudo-terminal of its own. */
#pragma once

#include <stdint.h>
#include <termios.h>

#include "lib/base/base.h"

struct terminal {
    int fd; /* -1: nothing to restore */
    struct termios saved;
};

/* Sends every key to the program, ^C included. Does nothing if fd is no terminal. */
void terminal_raw(struct terminal *t, int fd);
/* Hides what is typed, except the end of the line. */
void terminal_hide(struct terminal *t, int fd);
/* Undoes terminal_raw or terminal_hide; harmless when called twice. */
void terminal_restore(struct terminal *t);
/* The size of the terminal at one of the standard descriptors; 24 x 80 if there is none. */
void terminal_size(uint16_t *ret_rows, uint16_t *ret_cols);
