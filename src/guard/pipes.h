/* Pipes that bulk goes through, kept for the next one: making one costs more than a small
 * transfer. All are empty. */
#pragma once

#include "lib/base/base.h"

#define PIPES_MAX 256 /* more flows than that go without: descriptors are for connections */

struct pipe_pair {
    struct pipe_pair *next;
    int fds[2];
    size_t size;
};

struct pipe_pair *pipes_take(void); /* NULL: no more */
void pipes_give(struct pipe_pair *p);
void pipes_discard(struct pipe_pair *p); /* one that is not empty */
