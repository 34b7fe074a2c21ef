/* A terminal for the command. The one that sudo was started in belongs to the session of sudo's
 * shell and cannot become that of another session, so the command gets a new one, and sudo carries
 * bytes between the two. */
#pragma once

#include "lib/base/base.h"

struct terminal {
    int master; /* -1: not used, because standard input and output are no terminal */
    int slave;
};

/* Makes a terminal like the one we are in, if we are in one. */
void terminal_open(struct terminal *t);
/* terminal_take makes our terminal stop interpreting keys, so that the command's does;
 * terminal_give_back undoes this. */
void terminal_take(struct terminal *t);
void terminal_give_back(void);
void terminal_resize(const struct terminal *t);
/* Each moves the bytes that are there. False: that side is at its end. */
bool terminal_input(const struct terminal *t);
bool terminal_output(const struct terminal *t);
