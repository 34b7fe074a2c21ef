/* The line: where a warden that outlives its front sends the agent its channels. See agent.h. */
#pragma once

#include "agent/loop.h"

struct line {
    struct loop *loop;
    struct loop_source src;
    int fd;      /* -1: there is none */
    int channel; /* the newest that came and was not taken; -1: none */
    bool over;   /* closed, or broken */
};

void line_init(struct line *l, struct loop *loop);
/* Takes over fd. */
int line_open(struct line *l, int fd);
void line_done(struct line *l);
