/* The line: the socket over which the warden sends the agent channels, kernels and new root
 * directories. The line outlives the front. See agent.h; the messages are in stage/stage.h. */
#pragma once

#include <sys/types.h>

#include "lib/loop/loop.h"
#include "inside/stage/stage.h"

struct agent;

struct line {
    struct agent *agent;
    struct loop_source src;
    int fd;      /* -1: there is no line */
    int channel; /* the newest channel that came and was not taken yet; -1: none */
    bool over;   /* the line is closed, or broken */
};

void line_init(struct line *l, struct agent *a);
/* Takes over fd. */
int line_open(struct line *l, int fd);
void line_done(struct line *l);
/* Asks for a kernel. If it returns 0, kernel_came or no_kernel_came will be called. */
int line_ask(struct line *l);
/* Tells the warden how the new root or mount went: 0 or -errno. */
void line_told(struct line *l, enum line_what what, int code);
