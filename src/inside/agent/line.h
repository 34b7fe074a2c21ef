/* The line: the socket over which the warden sends the agent channels, kernels and new root
 * directories. The line outlives the front. See agent.h; the messages are in stage/stage.h. */
#pragma once

#include <sys/types.h>

#include "lib/loop/loop.h"
#include "inside/stage/stage.h"

struct line {
    struct loop *loop;
    struct loop_source src;
    int fd;      /* -1: there is no line */
    int channel; /* the newest channel that came and was not taken yet; -1: none */
    bool over;   /* the line is closed, or broken */
    /* A kernel came, asked for or not. `was`: the pid of the kernel that it is a copy of, or 0. The
     * callee takes the descriptors over. NULL: kernels are not expected here. */
    void (*on_kernel)(struct line *l, pid_t pid, pid_t was, const int fds[LINE_FDS_MAX]);
    void (*on_no_kernel)(struct line *l);
    /* A new root came; the callee takes it over, and answers with line_rooted. */
    void (*on_root)(struct line *l, int root, bool clear);
};

void line_init(struct line *l, struct loop *loop);
/* Takes over fd. */
int line_open(struct line *l, int fd);
void line_done(struct line *l);
/* Asks for a kernel. If it returns 0, on_kernel or on_no_kernel will be called. */
int line_ask(struct line *l);
/* Tells the warden how the new root went: 0 or -errno. */
void line_rooted(struct line *l, int code);
