/* A terminal for the command. The one that sudo was started in belongs to the session of sudo's
 * shell and cannot become that of another session, so the command gets a new one, and sudo carries
 * bytes between the two. */
#pragma once

#include "lib/base/base.h"

struct terminal {
    int master; /* -1: not used, standard input and output are not a terminal */
    int slave;
};

/* Makes one like the terminal we are in, if we are in one. */
void terminal_open(struct terminal *t);
/* Ours no longer interprets keys, the command's does; and back. */
void terminal_take(struct terminal *t);
void terminal_give_back(void);
void terminal_resize(const struct terminal *t);
/* Each moves what is there. False: at its end. */
bool terminal_input(const struct terminal *t);
bool terminal_output(const struct terminal *t);
