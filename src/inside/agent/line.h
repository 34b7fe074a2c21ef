/* The line: where a warden that outlives its front sends the agent its channels, kernels, and new
 * root directories. See agent.h; the messages are in stage/stage.h. */
#pragma once

#include <sys/types.h>

#include "inside/agent/loop.h"
#include "inside/stage/stage.h"

struct line {
    struct loop *loop;
    struct loop_source src;
    int fd;      /* -1: there is none */
    int channel; /* the newest that came and was not taken; -1: none */
    bool over;   /* closed, or broken */
    /* A kernel came, whether it was asked for or not; `was`: the one that it is a copy of, or 0.
     * The descriptors are the callee's. NULL: they are not expected here. */
    void (*on_kernel)(struct line *l, pid_t pid, pid_t was, const int fds[LINE_FDS_MAX]);
    void (*on_no_kernel)(struct line *l);
    /* A new root, the callee's. line_rooted is the answer. */
    void (*on_root)(struct line *l, int root, bool clear);
};

void line_init(struct line *l, struct loop *loop);
/* Takes over fd. */
int line_open(struct line *l, int fd);
void line_done(struct line *l);
/* Asks for a kernel. 0: one of the two above will be called. */
int line_ask(struct line *l);
/* How it went with the new root: 0 or -errno. */
void line_rooted(struct line *l, int code);
