/* A pool of pipes for bulk transfers, because making a pipe costs more than a small transfer. All
 * pipes in the pool are empty. */
#pragma once

#include "lib/base/list.h"

#define PIPES_MAX 256 /* further flows do without, to leave descriptors for connections */

struct pipe_pair {
    struct list link;
    int fds[2];
    size_t size;
};

struct pipe_pair *pipes_take(void); /* NULL: none left */
void pipes_give(struct pipe_pair *p);
void pipes_discard(struct pipe_pair *p); /* for a pipe that is not empty */
